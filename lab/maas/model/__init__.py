"""The state that a MAAS region keeps: machines, networks, storage, results, events."""
