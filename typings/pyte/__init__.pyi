from typing import NamedTuple

class Char(NamedTuple):
    data: str
    fg: str
    bg: str
    bold: bool
    italics: bool
    underscore: bool
    strikethrough: bool
    reverse: bool
    blink: bool

class Cursor:
    x: int
    y: int
    hidden: bool

class Screen:
    columns: int
    lines: int
    cursor: Cursor
    buffer: dict[int, dict[int, Char]]
    def __init__(self, columns: int, lines: int) -> None: ...
    @property
    def display(self) -> list[str]: ...

class Stream:
    def __init__(self, screen: Screen | None = ..., strict: bool = ...) -> None: ...
    def feed(self, data: str) -> None: ...
