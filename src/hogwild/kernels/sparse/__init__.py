"""Models of sparse rows: linear, factorization machines, texts, users and items."""
