"""Planning: linear programs over exponentially many states, and certificates of what they found."""
