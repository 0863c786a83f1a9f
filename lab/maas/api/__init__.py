"""The REST API: what each address and operation does."""
