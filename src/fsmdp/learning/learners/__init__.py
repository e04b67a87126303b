"""Learners: from what was counted to how to act."""
