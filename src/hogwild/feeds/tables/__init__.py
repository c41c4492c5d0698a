"""Tables: CSV, Arrow, Parquet and frames, their columns, categories, texts and lists."""
