"""What machines go through: commissioning, deployment, release, tests, rescue, power."""
