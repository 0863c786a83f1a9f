"""Reaches one BMC or many; knows nothing of MAAS, racks or operators."""
