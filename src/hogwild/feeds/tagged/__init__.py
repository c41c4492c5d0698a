"""Tagged sentences: CoNLL, CoNLL-U, segmented text, JSON lines, and the features of their words."""
