"""Rows that nodes read."""
