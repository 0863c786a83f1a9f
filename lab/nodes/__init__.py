"""Nodes as Linux namespaces: a real Debian with systemd and sshd behind each BMC."""
