"""One file a maker: what its BMCs do differently, and nothing else."""
