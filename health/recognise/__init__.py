"""Tells what a saved output is from its own form, and judges it with the readers and rules of the checks."""
