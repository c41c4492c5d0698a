"""JSON lines as tables: an object a line, its fields as columns."""
