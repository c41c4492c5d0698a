"""Files as streams of blocks: opened, unpacked, hashed, read in parallel and in order."""
