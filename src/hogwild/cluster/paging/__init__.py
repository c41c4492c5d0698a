"""Word vectors larger than a node: parameter actors hold the tables, a node the rows that its next block needs."""
