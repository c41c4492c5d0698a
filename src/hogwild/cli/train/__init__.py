"""`hogwild train`: a command for each kind of model."""
