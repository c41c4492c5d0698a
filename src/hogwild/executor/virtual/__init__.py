"""Runs on machines that are not there: virtual workers in one thread, by what visits cost on this machine."""
