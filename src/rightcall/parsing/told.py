"""Which parts of a text came as special tokens, where the caller says so: then nothing of it is guessed."""

from __future__ import annotations

from bisect import bisect_right


class Told:
    """A text in runs: one special token, plain text, or text of which nothing is known."""

    __slots__ = ("_kinds", "_starts", "size")

    def __init__(self, unknown: int = 0) -> None:
        self.size = unknown  # how long the text is of which something or nothing was said
        self._starts = [0]
        self._kinds: list[bool | None] = [None]

    @staticmethod
    def letters(size: int) -> Told:
        """Of a text of that length that is plain."""
        told = Told()
        told.add(size, False)
        return told

    def add(self, size: int, special: bool | None) -> None:
        """So many characters more."""
        if special or self._kinds[-1] is not special:
            self._starts.append(self.size)
            self._kinds.append(special)
        self.size += size

    def of(self, start: int, end: int) -> bool | None:
        """Is there a special token in that part of the text? None where nothing was said."""
        first = max(0, bisect_right(self._starts, start) - 1)
        kinds = self._kinds[first : bisect_right(self._starts, max(start, end - 1))]
        return True if True in kinds else None if None in kinds else False

    def behind(self, start: int) -> Told:
        """What was said of the text from there on."""
        rest = Told()
        places = [*self._starts[1:], self.size]
        for kind, at, end in zip(self._kinds, self._starts, places, strict=True):
            if end > start:
                rest.add(end - max(at, start), kind)
        return rest
