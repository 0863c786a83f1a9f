"""The stages of a node's life, one file each: observe, return if it is so, act, wait, record."""
