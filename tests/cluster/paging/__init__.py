"""Tests of nodes that have the rows at hand."""
