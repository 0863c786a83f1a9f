"""Learns a hardware profile from a node that is known to be good."""
