"""Matrix factorization, and what to recommend."""
