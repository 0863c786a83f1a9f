"""IPMI over RMCP+: transport, driver, decoders."""
