"""Tests of nodes that have some columns of all rows."""
