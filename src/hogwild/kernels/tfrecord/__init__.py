"""TFRecord files: frames, protocol buffers, examples, both ways."""
