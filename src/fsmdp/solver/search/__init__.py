"""Heuristic search from the start, with a certified bound as the heuristic."""
