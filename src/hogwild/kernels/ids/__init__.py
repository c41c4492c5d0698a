"""Names into numbers: hashes, tables of words and keys, ranks by frequency, templates."""
