"""Looking into models: their strongest weights by name, and what makes up one prediction."""
