"""Bytes of text files into numbers."""
