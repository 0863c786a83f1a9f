"""Readers of what tools print: text in, frozen values out. They judge nothing."""
