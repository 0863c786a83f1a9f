"""Acts: MAAS, Ansible, the node's life, guards, pools, commands."""
