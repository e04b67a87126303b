"""Simulation: compiled episodes, rollouts, and a Gymnasium environment."""
