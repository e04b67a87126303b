"""Which variables depend on which, found in transitions."""
