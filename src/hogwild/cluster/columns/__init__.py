"""Nodes that each have some columns of all rows of word vectors: only scores are sent."""
