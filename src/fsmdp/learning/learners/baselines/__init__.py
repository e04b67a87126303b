"""Baselines: learners to compare with, each from its source, on the interface of `learn`."""
