"""Equality and similarity of rows, for `dataset dedupe`.

    row_identity(row)            ->   RowIdentity(unit=..., content=..., turn=0, ...)
    split_fixed_and_prose(row)   ->   what must be equal in similar rows, and the text that may differ a little
    signature(text)              ->   128 numbers of 16 bits, by which `estimate_similarity` compares texts

Of a capture the whole conversation is compared: without some of its turns, a conversation with a bad turn would equal
one without it. What a trainer sees is compared: tools, messages, the answer of the model, the label. Ids, times, models
and the names of groups are not. Training rows and rows of other programs are compared one by one: all of a row, or the
values at `keys`.
"""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Iterator, Sequence
from operator import eq
from typing import Any, NamedTuple
from zlib import crc32

from rightcall.capture.captured_rows import FORGE, OUTCOME, SCHEMA
from rightcall.datasets.forge_rows import model_input
from rightcall.datasets.row_files import digest
from rightcall.datasets.rows.replies import value_at
from rightcall.datasets.schemas import TRAINING, label_of
from rightcall.errors import CallerError
from rightcall.storage.jsonl import encode_row
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.types import Json

# -- equality ----------------------------------------------------------------------------------------------------------


class RowIdentity(NamedTuple):
    """A row as it is compared: the digest of the `unit` that it belongs to (its conversation), the digest of its own
    `content`, and its place in the unit. The unit of a row that is compared alone is its content."""

    unit: bytes
    content: bytes
    turn: int = 0
    call: int = 0


def row_identity(row: Json, keys: Sequence[str] = ()) -> RowIdentity:
    """Return the digests of a row's unit and content and its place in the unit, by which equal rows are found.
    Raises `CallerError` for a row that has no value at any of the `keys`."""
    if keys:
        return _single_identity(dict(_select_values(row, keys)))
    version = row.get("schema_version")
    if version in (SCHEMA, FORGE):
        return _turn_identity(row)
    if version == TRAINING and isinstance(row.get("input"), dict):
        return _single_identity({"input": model_input(row["input"]), "label": row.get("label")})
    return _single_identity(row)


def _single_identity(value: Any) -> RowIdentity:
    """Return the identity of a row that is compared alone: its unit is its content. The order of keys does not
    count."""
    content = digest(encode_row(_sort_keys(value)))
    return RowIdentity(content, content)


def _turn_identity(row: Json) -> RowIdentity:
    """Return the identity of a row of a capture, whose unit is its conversation. Times and models do not count, and ids
    of calls only by their order."""
    trace = row["proxy_trace"]
    place = (trace["turn"], trace["call_index"])
    numbers: dict[Any, int] = {}
    compared = {
        "place": [*place, row["kind"], row.get("attempt")],
        "request": row["user_request"],
        "tools": row["available_tools"],
        "messages": [_number_ids(each, numbers) for each in row.get("messages") or ()],
        "assistant": _number_ids(row.get("assistant") or {}, numbers),
        "call": row.get("candidate_call"),
        "result": row.get("tool_result"),
        "outcome": row.get("outcome"),
        "label": label_of(row),
    }
    turn, call = (min(max(each, 0), 0xFFFFFFFF) for each in place)
    unit = digest(f"{row['example_group_id']}\0{trace['model']}")
    return RowIdentity(unit, digest(encode_row(_sort_keys(compared))), turn, call)


def _number_ids(message: Json, numbers: dict[Any, int]) -> Json:
    """Return a message with the ids of calls replaced by numbers in order of appearance, since a server invents the
    ids, and without its own `id`. `numbers` has the ids so far and is extended."""
    made = {key: value for key, value in message.items() if key not in ("tool_call_id", "tool_calls", "id")}
    if "tool_call_id" in message:
        made["tool_call_id"] = _number_for_id(message["tool_call_id"], numbers)
    if isinstance(message.get("tool_calls"), list):
        made["tool_calls"] = [
            {**each, "id": _number_for_id(each.get("id"), numbers)} if isinstance(each, dict) else each
            for each in message["tool_calls"]
        ]
    return made


def _number_for_id(id: Any, numbers: dict[Any, int]) -> int:
    """Return the number of an id; a new id gets the next number."""
    return numbers.setdefault(id if isinstance(id, str) else repr(id), len(numbers))


def _sort_keys(value: Any) -> Any:
    """Return a copy of a JSON value in which the keys of all objects are sorted, at any depth."""
    if isinstance(value, dict):
        return {key: _sort_keys(value[key]) for key in sorted(value)}
    return [_sort_keys(each) for each in value] if isinstance(value, list) else value


def _select_values(row: Json, keys: Sequence[str]) -> list[tuple[str, Any]]:
    """Return each of these dotted paths with its value in the row, None for a missing one. Raises `CallerError` if all
    values are missing."""
    found = [(key, value_at(row, key)) for key in keys]
    if all(value is None for _, value in found):
        raise CallerError(f"it has none of the keys {', '.join(keys)}; --key names what is compared")
    return found


# -- the parts of similar rows -----------------------------------------------------------------------------------------


def split_fixed_and_prose(row: Json, keys: Sequence[str] = ()) -> tuple[bytes, str]:
    """Return a digest of what must be equal in two similar rows, and the text that may differ a little. With `keys`,
    the digest is empty, and the text is all text at these paths; raises `CallerError` if the row has none of them.

    Calls must be equal except for prose in their arguments: `quantity: 2` is another call than `quantity: 3`, and a
    value without a blank is a name, not prose. Labels must be equal. What all rows share (system messages, tools) and
    what follows from the calls (their results) is ignored.
    """
    if keys:
        return b"", "\n".join([each for _, value in _select_values(row, keys) for each in _iterate_texts(value)])
    entry = row["input"] if isinstance(row.get("input"), dict) else row
    found = entry.get("messages")
    messages = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    if isinstance(entry.get("assistant"), dict):
        messages.append(entry["assistant"])
    calls = [call for call in (entry.get("candidate_call"), *_iterate_calls(messages)) if isinstance(call, dict)]
    texts = list(_iterate_prose(entry, messages, calls))
    if not texts and not calls:
        texts = list(_iterate_texts(row))
    fixed = [[call.get("name"), _sort_keys(_without_prose(call.get("arguments")))] for call in calls]
    return digest(encode_row({"calls": fixed, "label": label_of(row)})), "\n".join(texts)


def _iterate_calls(messages: list[Json]) -> Iterator[Json]:
    """Yield name and arguments of each call in these messages, arguments decoded if they are JSON text of an object."""
    for message in messages:
        for each in message.get("tool_calls") or () if isinstance(message.get("tool_calls"), list) else ():
            function = each.get("function") if isinstance(each, dict) else None
            if isinstance(function, dict):
                arguments = function.get("arguments")
                read = decode(arguments, MAX_DEPTH) if isinstance(arguments, str) else arguments
                yield {"name": function.get("name"), "arguments": read if isinstance(read, dict) else arguments}


def _iterate_prose(entry: Json, messages: list[Json], calls: list[Json]) -> Iterator[str]:
    """Yield the texts of user and assistant, of the outcome, and the prose in the arguments of calls. Without a user's
    message, the request of the row comes first."""
    dialogue = [each for each in messages if each.get("role") in ("user", "assistant")]
    if not any(each.get("role") == "user" for each in dialogue):
        yield from _iterate_texts(entry.get("user_request"))
    for message in dialogue:
        yield from _iterate_texts(message.get("content"))
    if entry.get("kind") == OUTCOME and not isinstance(entry.get("assistant"), dict):
        yield from _iterate_texts((entry.get("outcome") or {}).get("text"))
    for call in calls:
        yield from (each for each in _iterate_texts(call.get("arguments")) if _is_prose(each))


def _is_prose(value: Any) -> bool:
    """Return whether a value is a text of several words."""
    return isinstance(value, str) and len(value.split(None, 1)) > 1


def _without_prose(value: Any) -> Any:
    """Return a copy of the JSON value with each text of several words replaced by ""."""
    if isinstance(value, dict):
        return {key: _without_prose(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_prose(each) for each in value]
    return "" if _is_prose(value) else value


def _iterate_texts(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, depth first; keys are left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _iterate_texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _iterate_texts(each)


# -- MinHash -----------------------------------------------------------------------------------------------------------
# MinHash with one permutation: each shingle of a text is hashed once; the hash chooses one of 128 bins, and the lowest
# hash of each bin is kept. An empty bin borrows from another, in an order that is the same for every text ("optimal
# densification"). docs/dependencies.md compares it with a library.

BINS = 128
SIGNATURE_SIZE = 2 * BINS  # bytes
_SHINGLE = 5  # bytes of a text that are hashed together
_MULTIPLIER, _MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1
_RECALL = 0.99  # share of the pairs at the threshold that must share a band
_MOST_BYTES = 100_000  # of a text
_LAYOUT = struct.Struct(f"<{BINS}H")
_BLANK = re.compile(r"\s+")


def _make_borrowing_orders() -> list[list[int]]:
    """Return, for each bin, the fixed random order in which an empty bin borrows the value of another."""
    dice = random.Random(BINS)  # the seed is fixed so that all runs agree
    return [dice.sample(range(BINS), BINS) for _ in range(BINS)]


_BORROWING_ORDERS = _make_borrowing_orders()


def signature(text: str) -> bytes:
    """Return the MinHash signature of a text, `SIGNATURE_SIZE` bytes. Texts that differ only in case and blanks have
    the same one; only the first 100,000 bytes count."""
    plain = _BLANK.sub(" ", text.casefold()).strip().encode("utf-8", "surrogatepass")[:_MOST_BYTES]
    lowest: dict[int, int] = {}
    for shingle in {plain[at : at + _SHINGLE] for at in range(max(1, len(plain) - _SHINGLE + 1))}:
        mixed = crc32(shingle) * _MULTIPLIER & _MASK
        at, value = mixed >> 57, mixed >> 41 & 0xFFFF
        if value < lowest.get(at, 0x10000):
            lowest[at] = value
    return _LAYOUT.pack(
        *[
            lowest[at] if at in lowest else next(lowest[other] for other in _BORROWING_ORDERS[at] if other in lowest)
            for at in range(BINS)
        ]
    )


def estimate_similarity(one: bytes, other: bytes) -> float:
    """Return the estimated share of shingles that two texts have in common, from their signatures: 0 to 1, with an
    error of about 0.04."""
    equal: int = sum(map(eq, _LAYOUT.unpack(one), _LAYOUT.unpack(other)))
    return equal / BINS


def plan_bands(threshold: float) -> tuple[int, int]:
    """Return the number of bands and the width of each, in numbers, for splitting signatures: at least 99 % of the
    pairs at this similarity share a band, and few pairs below it do."""
    plans = [(BINS // width, width) for width in range(1, 33)]
    found = [(count, width) for count, width in plans if 1 - (1 - threshold**width) ** count >= _RECALL]
    return found[-1] if found else (BINS, 1)


def split_bands(signed: bytes, count: int, width: int) -> Iterator[bytes]:
    """Return an iterator of the first `count` bands of a signature, of `width` numbers each."""
    size = 2 * width
    return (signed[at * size : at * size + size] for at in range(count))
