"""What is wrong with the bytes of an answer, by class of failure: the lines of `conforms`, sorted.

wire_faults(raw, "chat", stream=True)    [WireFault("bad_index", "event 1: the call's `index` must be ...")]
"""

from __future__ import annotations

import msgspec

from rightcall.api_names import Api
from rightcall.doctor.raw_answer import RawAnswer
from rightcall.testing.conformance import RULES, conforms

_MOST = 40  # lines of one answer
# The first that stands in a line says what class it is of. What no word says is a matter of the dialect's own order.
_CLASSES = (
    ("`prompt_tokens`", "bad_translation"),
    ("`index` must be a number", "bad_index"),
    ("a call goes on after the next", "bad_index"),
    ("the name is said again", "bad_index"),
    ("the call's `index`", "bad_index"),
    ("two calls have the id", "bad_ids"),
    ("the call's `id`", "bad_ids"),
    ("the call's `call_id`", "bad_ids"),
    ("the `id` of a call changes", "bad_ids"),
    ("the `call_id` of a call changes", "bad_ids"),
    ("the call's name", "bad_index"),
    ("`finish_reason`", "wrong_finish"),
    ("two finishes", "wrong_finish"),
    ("comes after the finish", "wrong_finish"),
    ("text or calls come after", "wrong_finish"),
    ("must end with tool_calls", "wrong_finish"),
    ("it ends with tool_calls", "wrong_finish"),
    ("`stop_reason`", "wrong_finish"),
    ("stop_reason", "wrong_finish"),
    ("`finishReason`", "wrong_finish"),
    ("`done_reason`", "wrong_finish"),
    ("`done` must be true", "wrong_finish"),
    ("ends without", "wrong_finish"),
    ("incomplete though its calls are whole", "wrong_finish"),
    ("`arguments` must be text", "broken_arguments"),
    ("`arguments` must be an object", "broken_arguments"),
    ("`args` must be an object", "broken_arguments"),
    ("`partial_json` must be text", "broken_arguments"),
    ("`arguments` are no JSON object", "broken_arguments"),
    ("input is no JSON object", "broken_arguments"),
)


class WireFault(msgspec.Struct, frozen=True):
    """One fault, and the class it is of."""

    slug: str
    says: str


def wire_faults(raw: RawAnswer, api: Api, *, stream: bool) -> list[WireFault]:
    """In the order in which a client meets them, the same fault of several events once."""
    found = [*_head(raw, api, stream=stream)]
    if api in RULES:
        lines = conforms(raw.body, api, stream=stream)
        once = {line.partition(": ")[2] if line.startswith("event ") else line: line for line in reversed(lines)}
        found += [WireFault(_class(line), line) for line in reversed(once.values())]
    return found[:_MOST]


def _class(line: str) -> str:
    return next((slug for words, slug in _CLASSES if words in line), "bad_translation")


def _head(raw: RawAnswer, api: Api, *, stream: bool) -> list[WireFault]:
    if not stream or api == "ollama" or raw.kind == "text/event-stream" or raw.body.lstrip()[:1] == b"{":
        return []  # that a whole answer came is told where it is read
    said = raw.kind or "nothing"
    return [WireFault("bad_translation", f"the stream's content type is {said:.60}, not text/event-stream")]
