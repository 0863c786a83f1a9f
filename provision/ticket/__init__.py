"""Ticket bundles: everything known about a node in one archive that a vendor may read."""
