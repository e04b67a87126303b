"""Cells: what a learner counts, what is known of it beforehand, and what the counts tell."""
