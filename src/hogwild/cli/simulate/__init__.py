"""Commands that predict how training goes on machines that one does not have."""
