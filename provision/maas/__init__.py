"""A small typed client for MAAS's API 2.0."""
