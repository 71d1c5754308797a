"""One reply out of a log, read: the value that a tally counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from rightcall.types import Call, Reply, Span, Text

Reread = Callable[[], Sequence[Span]]


class LoggedReply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply and where it comes from.

    - `reply`: what was read.
    - `model`, `server`, `format`: who wrote it, what it came through, and what it is written in; empty where nothing
      says so. The format of a reply without a call is told by nothing, unless it was named.
    - `path`, `line`: its place in the log.
    - `source`: the text as the model wrote it; None where a server had taken it apart, or it was not kept.
    - `reread`: gives the spans of the source, for the few replies that become samples.
    - `is_first`: it is counted as a reply. A further call of one that was counted is not.
    """

    reply: Reply
    model: str = ""
    server: str = ""
    format: str = ""
    path: str = ""
    line: int = 0
    source: str | None = None
    reread: Reread | None = None
    is_first: bool = True

    def view(self) -> tuple[str, Sequence[Span]]:
        """The text to be shown, and what became of it: the source, or what is left of it in the parts."""
        if self.source is None:
            return _of_parts(self.reply)
        return self.source, self.reread() if self.reread is not None else (Span(0, len(self.source), "text"),)

    def call_places(self, text: str) -> list[tuple[int, int] | None]:
        """Where each attempt stands in the text of `view`."""
        places: list[tuple[int, int] | None] = []
        at = 0
        for call in self.reply.attempts:
            said = call.raw or call.name
            found = text.find(said, at) if said else -1
            places.append((found, found + len(said)) if found >= 0 else None)
            at = found + len(said) if found >= 0 else at
        return places


def _of_parts(reply: Reply) -> tuple[str, list[Span]]:
    pieces: list[str] = []
    spans: list[Span] = []
    at = 0
    for part in reply.parts:
        kind = "call" if isinstance(part, Call) else "text" if isinstance(part, Text) else "reasoning"
        said = f"{part.name} {part.raw or part.json}" if isinstance(part, Call) else part.text
        pieces.append(said + "\n")
        spans.append(Span(at, at + len(said) + 1, kind))  # type: ignore[arg-type]
        at += len(said) + 1
    return "".join(pieces), spans
