"""Files to arrays, once. Strings and files stop here: beyond are integers and floats."""
