"""What is minimised and how weights step: losses, update rules, penalties, first values."""
