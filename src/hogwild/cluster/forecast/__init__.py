"""What clusters would do that one does not have: computed for word vectors, simulated for any program."""
