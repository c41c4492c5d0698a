"""Sequence taggers: CRFs, decoding, tag schemes, scores."""
