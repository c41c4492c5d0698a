"""How nodes bring together what each has learnt: one strategy a file."""
