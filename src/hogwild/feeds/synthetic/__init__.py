"""Data that is made."""
