"""Consoles: recording, replay, rendering, causes."""
