"""Where the visits of a run are made: compiled code in threads of this process, or processes of their own."""
