"""Word vectors: training, files, neighbours, tests."""
