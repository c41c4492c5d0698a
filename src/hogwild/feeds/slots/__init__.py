"""Samples with slots: MultiSlot, Criteo, libffm, and their descriptions."""
