"""Reads a profile's limits; one that is missing or of the wrong kind makes a check unknown."""

from __future__ import annotations

from health.errors import HealthError
from inventory.model import Profile


class LimitMissing(HealthError):
    """The profile does not state a limit that a check compares with."""

    def __init__(self, profile: str, limit: str, wanted: str) -> None:
        super().__init__(f"profile {profile} states no {wanted} called {limit}")
        self.profile = profile
        self.limit = limit


def number(profile: Profile, name: str) -> float:
    """Return a numeric limit. Raises LimitMissing."""
    value = profile.limit(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise LimitMissing(profile.name, name, "number")
    return float(value)


def text(profile: Profile, name: str) -> str:
    """Return a limit that is a word; versions written as bare numbers count. Raises LimitMissing."""
    value = profile.limit(name)
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        raise LimitMissing(profile.name, name, "text")
    return str(value)


def words(profile: Profile, name: str) -> tuple[str, ...]:
    """Return a limit that is a list of words; one word stands for a list of one. Raises LimitMissing."""
    value = profile.limit(name)
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple) or not all(isinstance(word, str | int | float) for word in value):
        raise LimitMissing(profile.name, name, "list")
    return tuple(str(word) for word in value)


def optional_number(profile: Profile, name: str, otherwise: float) -> float:
    """Return a numeric limit, or `otherwise` where the profile leaves it out."""
    return otherwise if profile.limit(name) is None else number(profile, name)


def optional_words(profile: Profile, name: str) -> tuple[str, ...]:
    """Return a list limit, empty where the profile leaves it out."""
    return () if profile.limit(name) is None else words(profile, name)
