"""Theory: what the theorems say about regret."""
