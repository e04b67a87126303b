"""The model: what a factored-state MDP is made of, and its exact solution when it is small."""
