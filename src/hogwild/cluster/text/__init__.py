"""A text that nodes read themselves, each its part."""
