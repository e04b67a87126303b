"""Acting with simulations at every decision."""
