"""What goes between nodes: changes of rows packed, sent, counted, and brought together."""
