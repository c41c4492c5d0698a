"""What turns Python into machine code, and the few instructions that Python has no word for."""
