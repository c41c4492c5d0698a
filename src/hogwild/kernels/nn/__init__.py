"""Layers: dense ones by BLAS, lookups of embeddings, and the perceptron made of both."""
