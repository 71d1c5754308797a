"""`Key`: a secret that is not shown by accident."""

from __future__ import annotations


class Key:
    """A secret whose `repr` shows only its `name`, which says where it came from; `reveal` returns the text."""

    __slots__ = ("_text", "name")

    def __init__(self, text: str, name: str) -> None:
        self._text, self.name = text, name

    def reveal(self) -> str:
        """Return the text of the secret."""
        return self._text

    def __repr__(self) -> str:
        return f"Key({self.name})"
