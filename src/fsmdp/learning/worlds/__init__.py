"""Worlds: where episodes come from. The one part of learning that may know a model."""
