"""The commands, one file a concern; each parses, calls provision, renders."""
