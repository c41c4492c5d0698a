"""Rows of features: the contract of a format, svmlight, the feed, its store."""
