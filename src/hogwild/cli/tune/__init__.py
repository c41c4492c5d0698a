"""`hogwild tune`: a search for options, one module a kind of model."""
