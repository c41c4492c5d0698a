"""Encoded data on disk: arrays in files, the cache, ranks and tables of words."""
