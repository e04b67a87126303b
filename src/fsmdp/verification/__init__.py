"""A checker of bounds that shares no code with what made them."""
