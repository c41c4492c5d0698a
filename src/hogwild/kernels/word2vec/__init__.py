"""Word vectors: skip-gram and CBOW over windows of a text."""
