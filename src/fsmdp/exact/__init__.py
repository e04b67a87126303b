"""Exact solutions of models that are small enough, and exact values of policies."""
