"""Models rewritten into others, with the way back for states, policies and bounds."""
