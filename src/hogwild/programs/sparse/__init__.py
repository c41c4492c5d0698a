"""Programs that learn from rows: linear, factorization machines, perceptrons, texts."""
