"""A Redfish service shaped like an iDRAC's, one for each BMC, on the same state as its IPMI side."""
