"""Who listens to the events of a run: display, watch, checkpoints, rescue."""
