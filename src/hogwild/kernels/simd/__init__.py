"""Vector code: rows of 8 and 16 floats at once, written as LLVM instructions."""
