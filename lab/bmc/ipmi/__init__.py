"""IPMI 2.0 over LAN, the BMC's side: packets, ciphers, sessions, SOL."""
