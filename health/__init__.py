"""Judges: evidence in, outcome out; no I/O."""
