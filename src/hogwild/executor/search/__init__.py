"""Searching for options: what may be tried, one trial, and all of them within a budget."""
