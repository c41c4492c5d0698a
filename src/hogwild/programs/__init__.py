"""What can be trained: parameters, predict, evaluate, save. No threads here."""
