"""Parse many texts on all cores, in order: `parse_many`.

    for reply in parse_many(texts, tools=tools, format="hermes"): ...

Texts travel to the workers in batches and replies come back pickled; each reply equals what `parse` returns.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Literal

from rightcall.datasets.rows.engines import LocalEngine
from rightcall.errors import CallerError
from rightcall.formats import find
from rightcall.formats.registered import FormatCarrier
from rightcall.formats.spec import Format
from rightcall.parsing.options import Limits, Policy, ReasoningCalls, Rescue, read_options
from rightcall.parsing.parser import parse
from rightcall.tools.toolset import ToolLike, Toolset, without_code
from rightcall.types import Json, Reply

_FIRST_TEXTS = 16  # in the first batch, which is small because the caller waits for the first reply
_MOST_TEXTS = 256
_BATCH_CHARS = 1 << 18
Source = str | Iterable[tuple[str, bool | None]]


def parse_many(
    texts: Iterable[Source],
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
    """Parse many texts on all cores. Yield the reply of each text in order, as `parse` returns it; ids are unique
    within their reply.

    Texts are read as replies are taken, a bounded number ahead, so neither has to fit into memory. Worker processes are
    started, and end with the iterator; one that is killed is replaced without loss.

    - `texts`: the texts of models, each as `parse` takes one.
    - `tools`, `format`, `reasoning`, `repair`, `rescue`, `reasoning_calls`, `choice`, `finish`, `spans`, `limits`: as
      in `parse`, for all of them.
    - `jobs`: the number of processes; None for one per core, 1 for this process alone.

    Raise what `parse` raises, `WorkerLost` if one batch ends its process repeatedly, and `CallerError` for a single
    text in place of an iterable.
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
    return _parse_in_pool(engine, TextsWork(options), texts)


def _parse_in_pool(engine: LocalEngine, work: TextsWork, texts: Iterable[Source]) -> Iterator[Reply]:
    """Yield the replies of all texts in order, parsed by the engine's workers in batches."""
    for result in engine.map(work, map(_pickle_batch, _split_into_batches(texts))):
        yield from pickle.loads(result)  # noqa: S301 - written by a process of ours


def _split_into_batches(texts: Iterable[Source]) -> Iterator[list[Any]]:
    """Yield the texts, in order, in lists of growing size, limited by the number and the characters of the texts. A
    text that is an iterator of pieces becomes a list, which can be pickled."""
    # An iterator of pairs cannot be pickled; a list can. `parse` rejects everything that is not a text.
    source = (list(text) if hasattr(text, "__next__") else text for text in texts)
    size = _FIRST_TEXTS
    while batch := list(islice(source, size)):
        yield batch
        chars = sum([len(text) for text in batch if isinstance(text, str)])
        size = max(1, min(_MOST_TEXTS, size * 2, size * _BATCH_CHARS // max(chars, 1)))


def _pickle_batch(batch: list[Any]) -> bytes:
    """Return a pickled batch. Raises the error that `parse` raises for the first value that is no text, if the batch
    cannot be pickled, else the error of pickling."""
    try:
        return pickle.dumps(batch)
    except (pickle.PicklingError, TypeError, AttributeError):
        for text in batch:
            if not isinstance(text, (str, list, tuple)):
                parse(text)  # raises the error that names the type
        raise


class TextsWork(FormatCarrier):
    """Parse a batch of texts."""

    def __init__(self, options: Json) -> None:
        self._options = options

    def __call__(self, item: bytes) -> bytes:
        """Return the pickled replies of a pickled batch of texts, in their order. Raises what `parse` raises."""
        texts = pickle.loads(item)  # noqa: S301 - written by a process of ours
        return pickle.dumps([parse(text, **self._options) for text in texts])
