"""Judges: raw evidence of a node in, an answer with its reasons out. No I/O."""
