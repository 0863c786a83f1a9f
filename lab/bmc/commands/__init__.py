"""The commands that a BMC answers, a module for each network function or topic."""
