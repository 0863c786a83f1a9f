"""The only package that knows Invoke."""
