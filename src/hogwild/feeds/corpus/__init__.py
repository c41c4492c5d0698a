"""Running text for word vectors."""
