"""`Key`: a secret that is not shown by accident."""

from __future__ import annotations


class Key:
    """A key that shows itself to nobody but the one who asks for it by name. `name` says where it came from."""

    __slots__ = ("_text", "name")

    def __init__(self, text: str, name: str) -> None:
        self._text, self.name = text, name

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Key({self.name})"
