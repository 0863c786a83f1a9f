"""What the lab's machines talk to: what to boot, and where to report."""
