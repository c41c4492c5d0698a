"""Rows of files that nodes read themselves, each its part."""
