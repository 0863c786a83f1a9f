"""Redfish: client, driver, and what is read from its resources."""
