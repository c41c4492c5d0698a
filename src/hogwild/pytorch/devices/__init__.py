"""Training on a device with memory of its own, such as a GPU: what is there, what goes there, what is done there."""
