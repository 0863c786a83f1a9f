"""The virtual rack: real protocols, no hardware; imports no product code."""
