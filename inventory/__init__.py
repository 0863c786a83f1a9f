"""Knows what exists and what happened."""
