"""The user table of one BMC: ids 1 to 15, names, passwords, levels (IPMI 2.0 §22.26 to 22.30)."""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lab.bmc.spec import BmcUser, Privilege

MAX_USERS = 15
NAME_SIZE = 16
PASSWORD_SIZE = 20


@dataclass(slots=True)
class Account:
    """One row of the user table; rows exist whether they are used or not."""

    user_id: int
    name: bytes = b""
    password: bytes = field(default=b"", repr=False)
    privilege: Privilege = Privilege.NO_ACCESS
    enabled: bool = False
    messaging: bool = False
    callback_only: bool = False
    link_auth: bool = False
    sol: bool = True


class UserTable:
    """All rows; row 1 is the null user and stays disabled, as shipped BMCs have it."""

    def __init__(self, users: Sequence[BmcUser]) -> None:
        if len(users) > MAX_USERS - 1:
            raise ValueError(f"a BMC holds {MAX_USERS - 1} named users, {len(users)} were given")
        self._rows = [Account(user_id) for user_id in range(1, MAX_USERS + 1)]
        for row, user in zip(self._rows[1:], users, strict=False):
            name, password = user.name.encode(), user.password.encode()
            if len(name) > NAME_SIZE or len(password) > PASSWORD_SIZE:
                raise ValueError(
                    f"user {user.name}: at most {NAME_SIZE} bytes name, {PASSWORD_SIZE} password"
                )
            row.name, row.password, row.privilege = name, password, user.privilege
            row.enabled = row.messaging = True

    def __iter__(self) -> Iterator[Account]:
        return iter(self._rows)

    @property
    def enabled_count(self) -> int:
        return sum(row.enabled for row in self._rows)

    def authenticate(self, name: bytes, password: bytes) -> Account | None:
        """Return the account that name and password open."""
        row = self.find(name)
        matches = row is not None and hmac.compare_digest(row.password, password)
        return row if matches else None

    def row(self, user_id: int) -> Account | None:
        return self._rows[user_id - 1] if 1 <= user_id <= MAX_USERS else None

    def find(self, name: bytes) -> Account | None:
        """Return the enabled account with that name."""
        return next((row for row in self._rows if row.enabled and row.messaging and row.name == name), None)
