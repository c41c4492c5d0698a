"""From a file to a served model, as a new user goes."""
