"""Large files to many nodes at once: nodes serve nodes, and the mirror sends about one copy."""
