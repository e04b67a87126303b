"""Experiments: what is run, where results are kept, and the report."""
