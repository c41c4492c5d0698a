"""Damaged and hostile files for everything that reads one."""
