"""Bounds from regions: small parts of a model, each solved exactly, that agree by prices."""
