"""Counters, gauges and histograms, written as Prometheus reads them: text, without a library.

    asked = CounterFamily("rightcall_requests_total", "Requests.", ("route", "status"))
    asked.add(("chat", "200"))
    "".join(asked.lines())

The number of series of a family is bounded: a label's value that comes when it is full is counted as "other". Values
may be anything: what would break a line is escaped, what is too long is cut.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence

from rightcall.safe_text import visible

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
OTHER = "other"
_MOST = 200  # series of a family
_LONGEST = 120  # characters of a label's value
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"'})

Labels = tuple[str, ...]


class CounterFamily:
    """A number for each set of labels, which goes up; a gauge (`kind`) may go down too."""

    def __init__(
        self, name: str, help: str, labels: Sequence[str] = (), *, kind: str = "counter", most: int = _MOST
    ) -> None:
        self.name, self.help, self.kind = name, help, kind
        self._labels, self._most = tuple(labels), most
        self._values: dict[Labels, float] = {} if labels else {(): 0}

    def add(self, labels: Labels = (), amount: float = 1) -> None:
        """So much more for these labels."""
        values = self._values
        if labels not in values:
            labels = known_labels(labels, values, self._most)
        values[labels] = values.get(labels, 0) + amount

    def set(self, value: float, labels: Labels = ()) -> None:
        """Exactly so much for these labels."""
        self._values[known_labels(labels, self._values, self._most)] = value

    def __getitem__(self, labels: Labels) -> float:
        return self._values.get(labels, 0)

    def lines(self) -> Iterator[str]:
        """The family as text."""
        yield from _head(self.name, self.help, self.kind)
        for labels, value in list(self._values.items()):
            yield f"{self.name}{_braces(self._labels, labels)} {_number(value)}\n"


class HistogramFamily:
    """How many values were at most so large, for each set of labels, and their sum."""

    def __init__(
        self, name: str, help: str, labels: Sequence[str] = (), *, bounds: Sequence[float] = SECONDS, most: int = 50
    ) -> None:
        self.name, self.help = name, help
        self._labels, self._bounds, self._most = tuple(labels), tuple(bounds), most
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def add(self, value: float, labels: Labels = ()) -> None:
        """One more value for these labels."""
        if labels not in self._counts:
            labels = known_labels(labels, self._counts, self._most)
            self._counts.setdefault(labels, [0] * (len(self._bounds) + 1))
        self._counts[labels][bisect_left(self._bounds, value)] += 1
        self._sums[labels] = self._sums.get(labels, 0.0) + value

    def count(self, labels: Labels = ()) -> int:
        """How many values there were."""
        return sum(self._counts.get(labels, ()))

    def lines(self) -> Iterator[str]:
        """The family as text."""
        yield from _head(self.name, self.help, "histogram")
        names = (*self._labels, "le")
        for labels, counts in list(self._counts.items()):
            total = 0
            for bound, many in zip((*map(_number, self._bounds), "+Inf"), counts, strict=True):
                total += many
                yield f"{self.name}_bucket{_braces(names, (*labels, bound))} {total}\n"
            own = _braces(self._labels, labels)
            yield f"{self.name}_sum{own} {_number(self._sums[labels])}\n{self.name}_count{own} {total}\n"


def known_labels(labels: Labels, known: Collection[Labels], most: int) -> Labels:
    """These labels, cut to size; or all of them "other", if there are as many sets as there may be."""
    cut = tuple([each[:_LONGEST] for each in labels])
    return cut if cut in known or len(known) < most or not labels else (OTHER,) * len(labels)


def _head(name: str, help: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {help}\n# TYPE {name} {kind}\n"


def _braces(names: Sequence[str], values: Sequence[str]) -> str:
    if not names:
        return ""
    return "{" + ",".join([f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True)]) + "}"


def _escaped(value: str) -> str:
    """Nothing in it can end a line or hide, and all of it is UTF-8."""
    return visible(value, one_line=True).translate(_ESCAPES)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
