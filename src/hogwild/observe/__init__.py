"""Looking at a run: events to JSON lines and TensorBoard."""
