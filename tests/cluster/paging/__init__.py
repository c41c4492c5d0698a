"""Tests of what goes between nodes."""
