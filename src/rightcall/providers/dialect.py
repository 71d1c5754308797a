"""What is known of one API: how to tell its JSON from others, read it and write it. `DIALECTS` in `sniff.py` has all.

OLLAMA = Dialect("ollama", shows=_is_ollama, whole=whole, chunk=chunk, opaque=opaque, ...)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from rightcall.api_names import Api
from rightcall.providers.deltas import Deltas, Seen
from rightcall.types import Call, Json, Reply


class CallOutcome(NamedTuple):
    """What a call came to, for the model: the `call`, its `output` as text, whether it `is_error`, and whether the call
    was one of a `custom` tool, which some APIs answer in another field."""

    call: Call
    output: Any
    is_error: bool = False
    custom: bool = False


class Spoken(NamedTuple):
    """A turn of the model in a history: its `value`, as the API writes it and `Dialect.whole` reads it."""

    value: Any


class Dialect(NamedTuple):
    """One API. A new one is a file with such a value, and a line in `DIALECTS`.

    - `name`: its word, one of `Api`.
    - `shows`: can this object only be one of its own? Asked of responses, messages, items and chunks.
    - `whole`, `chunk`: what a response says, and what one piece of a stream adds.
    - `opaque`: what the provider wants back unseen: of the message, and by call id.
    - `assistant_message`: a reply as the assistant's turn, with everything that the wire can say.
    - `turn`: the same as servers take it back, with what is opaque in it.
    - `results`: the messages that answer calls, and a note to the model if there is one.
    - `sides`: a history in order: turns of the model as `Spoken`, and what others said as messages in the shape of
      OpenAI's Chat. A result has the id of its call and its name as far as the wire has them, and `is_error` where the
      wire says so.
    """

    name: Api
    shows: Callable[[Json], bool]
    whole: Callable[[Any], Deltas]
    chunk: Callable[[Json, Seen], Deltas]
    opaque: Callable[[Any], tuple[Json, list[tuple[str, Json]]]]
    assistant_message: Callable[[Reply], Any]
    turn: Callable[[Reply, dict[str, Json]], Any]
    results: Callable[[Sequence[CallOutcome], str], list[Json]]
    sides: Callable[[Sequence[Any]], Iterator[Json | Spoken]]


class ResultWriter(Protocol):
    def __call__(self, call: Call, output: Any, *, is_error: bool = False) -> Json: ...


def one_by_one(tool_result: ResultWriter) -> Callable[[Sequence[CallOutcome], str], list[Json]]:
    """A message for every result, and one for the note."""

    def results(outcomes: Sequence[CallOutcome], note: str) -> list[Json]:
        out = [tool_result(each.call, each.output, is_error=each.is_error) for each in outcomes]
        return with_note(out, note)

    return results


def with_note(messages: list[Json], note: str) -> list[Json]:
    return [*messages, {"role": "user", "content": note}] if note else messages
