"""Tests with threads or processes, run many times on quiet and on busy cores: `make steady`."""
