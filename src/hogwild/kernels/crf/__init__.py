"""Linear-chain CRFs: scores, forward-backward, gradient, Viterbi."""
