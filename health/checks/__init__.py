"""One file a check; the table is health/catalogue.py."""
