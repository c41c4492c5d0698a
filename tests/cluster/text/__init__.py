"""Tests of texts that nodes read."""
