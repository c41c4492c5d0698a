"""What every worker runs: the loop over visits, in five modes, with its order, rates, merges and trace."""
