"""Commands that look: at runs, at experiments, at the machine."""
