"""`parse_many`: many texts through `parse`, on all cores, in order.

    for reply in parse_many(texts, tools=tools, format="hermes"): ...

Texts travel to the workers in batches and replies come back as bytes; a reply is what `parse` gives here, to the field.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Literal

from rightcall.datasets.rows.local_pool import LocalEngine
from rightcall.errors import CallerError
from rightcall.formats import find
from rightcall.formats.registered import FormatCarrier
from rightcall.formats.spec import Format
from rightcall.parsing.options import Limits, Policy, ReasoningCalls, Rescue, read_options
from rightcall.parsing.parser import parse
from rightcall.tools.toolset import ToolLike, Toolset, without_code
from rightcall.types import Json, Reply

_TEXTS = 256  # at most in a batch
_CHARS = 1 << 18  # after which a batch is full
Given = str | Iterable[tuple[str, bool | None]]


def parse_many(
    texts: Iterable[Given],
    *,
    tools: Toolset | Iterable[ToolLike] | None = None,
    format: str | Format = "auto",
    reasoning: Literal["auto", "open", "off"] = "auto",
    repair: Policy | Mapping[str, Policy] = "safe",
    rescue: Rescue = "safe",
    reasoning_calls: ReasoningCalls = "safe",
    choice: str | Mapping[str, Any] | None = None,
    finish: str | None = None,
    spans: bool = False,
    limits: Limits | None = None,
    jobs: int | None = None,
) -> Iterator[Reply]:
    """The reply of each text, in order, each as `parse` gives it; ids are unique within their reply.

    Texts are taken as replies are, a bounded number ahead, so neither need fit into memory. Processes are started for
    it, and end with the iterator; one that is killed is replaced, and nothing is lost.

    - `texts`: what models wrote, each as `parse` takes one.
    - `tools`, `format`, `reasoning`, `repair`, `rescue`, `reasoning_calls`, `choice`, `finish`, `spans`, `limits`: as
      in `parse`, for all of them.
    - `jobs`: how many processes; None for one per core, 1 for none but this one.

    Raises what `parse` raises, `WorkerLost` if one batch ends its process again and again, and `CallerError` for one
    text where an iterable of them should be.
    """
    if isinstance(texts, (str, bytes)):
        raise CallerError("parse_many takes an iterable of texts, not one text; give [text], or call parse(text)")
    read_options(tools, reasoning, repair, rescue, reasoning_calls, choice, spans, False, limits)
    declared = Toolset.of(tools)
    options: Json = {
        "tools": declared and without_code(declared),
        "format": format if format == "auto" else find(format),
        "reasoning": reasoning,
        "repair": repair,
        "rescue": rescue,
        "reasoning_calls": reasoning_calls,
        "choice": choice,
        "finish": finish,
        "spans": spans,
        "limits": limits,
    }
    engine = LocalEngine(jobs)
    if engine.jobs == 1:
        return (parse(text, **options) for text in texts)
    return _replies(engine, TextsWork(options), texts)


def _replies(engine: LocalEngine, work: TextsWork, texts: Iterable[Given]) -> Iterator[Reply]:
    for result in engine.map(work, map(_packed, _batches(texts))):
        yield from pickle.loads(result)  # noqa: S301 - our own bytes


def _batches(texts: Iterable[Given]) -> Iterator[list[Any]]:
    source, size = iter(texts), 16  # the first batches are small: somebody waits for the first reply
    while batch := list(islice(_portable(source), size)):
        yield batch
        chars = sum([len(text) for text in batch if isinstance(text, str)])
        size = max(1, min(_TEXTS, size * 2, size * _CHARS // max(chars, 1)))


def _packed(batch: list[Any]) -> bytes:
    try:
        return pickle.dumps(batch)
    except (pickle.PicklingError, TypeError, AttributeError):
        for text in batch:
            if not isinstance(text, (str, list, tuple)):
                parse(text)  # which says what is wrong with it
        raise


def _portable(texts: Iterator[Given]) -> Iterator[Any]:
    """Pairs in a list, and everything else as it is: what is no text is refused where it is parsed."""
    for text in texts:
        yield list(text) if hasattr(text, "__next__") else text


class TextsWork(FormatCarrier):
    """Parses a batch of texts."""

    def __init__(self, options: Json) -> None:
        self._options = options

    def __call__(self, item: bytes) -> bytes:
        texts = pickle.loads(item)  # noqa: S301 - our own bytes
        return pickle.dumps([parse(text, **self._options) for text in texts])
