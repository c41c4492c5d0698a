"""Model directories: arrays, checks, and how they are put in place."""
