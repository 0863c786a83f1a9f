"""Boot logs: familiar, expected and in order, as learned from healthy nodes of the same kind."""
