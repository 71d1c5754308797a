"""Native JSON calls in the text of a reply that has no others:  Let me see. [{"id": "call_1", "function": {...}}]

What a provider's API would have carried; some models write it where they should have written text.
"""

from __future__ import annotations

import re

from rightcall.formats import FORMATS
from rightcall.ids import Ids
from rightcall.types import Part, Reply, Span, Text
from rightcall.wire.compile import compiled
from rightcall.wire.options import ReadOptions
from rightcall.wire.rescue import MINTED, fold, quiet

_OPENER = re.compile(r'\[\s{0,16}\{\s{0,16}"id"\s{0,16}:|\{\s{0,16}"id"\s{0,16}:\s{0,16}"call_')
_MOST = 400_000


def native_calls(text: str, options: ReadOptions) -> tuple[Reply, list[Span]] | None:
    """What a reply holds that has native calls in it, and its spans; None if there are none."""
    from rightcall.wire.reading import Reading

    found = _OPENER.search(text)
    if found is None or options.tools is None or len(text) > _MOST:
        return None
    start = found.start()
    reading = Reading(compiled(FORMATS["xlam"]), quiet(options, spans=True), Ids.numbered(MINTED))
    reading.feed(text[start:])
    reading.close()
    reply = fold(reading.out, "a provider's API")
    if not reply.attempts:
        return None
    before: tuple[Part, ...] = (Text(text[:start].rstrip()),) if text[:start].strip() else ()
    spans = [Span(span.start + start, span.end + start, span.kind) for span in reading.spans or ()]
    first = [Span(0, start, "text")] if start else []
    return Reply((*before, *reply.parts), reply.problems, reply.format), first + spans
