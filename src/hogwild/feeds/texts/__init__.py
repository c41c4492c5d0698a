"""Lines of labels and text, as other tools have them."""
