"""Commands that make an experiment: many trainings that are compared. `run.py` is what all of them do."""
