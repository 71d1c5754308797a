"""The format is not known: the text is read when it is whole, in the format that `detect` finds likeliest."""

from __future__ import annotations

from rightcall.formats import FORMATS
from rightcall.formats.spec import Envelope, Format
from rightcall.ids import Ids
from rightcall.parse.compile import compiled
from rightcall.parse.detect import detect
from rightcall.parse.engine import Options
from rightcall.parse.reading import Reading
from rightcall.types import Event, Span

# No opener of any format: only reasoning is told from text.
_PLAIN = Format("auto", body=Envelope(), call=("\0no call\0", ""), reasoning=("<think>\n", "\n</think>\n\n"))


class AutoReading:
    """Gives nothing out before the end."""

    def __init__(self, options: Options, ids: Ids) -> None:
        self._options, self._ids = options, ids
        self._chunks: list[str] = []
        self.compiled = compiled(_PLAIN)
        self.out: list[Event] = []
        self.spans: list[Span] | None = None

    def feed(self, text: str) -> None:
        self._chunks.append(text)

    def close(self) -> None:
        text = "".join(self._chunks)
        names = detect(text[: self._options.limits.reply], tools=self._options.tools)
        if names:
            self.compiled = compiled(FORMATS[names[0]])
        reading = Reading(self.compiled, self._options, self._ids)
        reading.feed(text)
        reading.close()
        self.out, self.spans = reading.out, reading.spans
