"""Invoke's entry point: the namespace of commands."""

from invoke.collection import Collection

namespace = Collection()
