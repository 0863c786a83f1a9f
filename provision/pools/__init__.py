"""Pools: who is in which, who is handed out, and the mirror of it for MAAS, monitoring and launchers."""
