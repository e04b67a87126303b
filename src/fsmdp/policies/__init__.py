"""Policies: what may be followed, one state at a time or by compiled code."""
