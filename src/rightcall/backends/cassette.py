"""The cassette: a file of recorded exchanges with a model server, one per line of JSON, safe to keep in a repository.

    {"rightcall_cassette": 1, "api": "chat", "model": "m", "mode": "native"}
    {"request": {"method": "POST", "path": "/v1/chat/completions", "body": {...}},
     "response": {"status": 200, "headers": {...}, "chunks": ["data: ..."], "delays": [12], "broken": ""}}

It holds no secret that `rightcall.redaction` recognizes: only harmless headers are written, and bodies are scrubbed.
Its mode is 0600. A file that is read is not trusted: its size and depth are limited.

`RequestMatcher` finds the recorded answer to a request. Ids of calls are numbered before two requests are compared,
since each run creates new ones, and fields without influence on the answer are ignored. A repeated request gets the
next answer that was recorded for it; after the last one, the last one again.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from rightcall.errors import BadCassette, FileFailed, NotOurs, NotRecorded
from rightcall.redaction.pieces import scrub_pieces
from rightcall.redaction.scrubber import Scrubber
from rightcall.storage.file_kinds import existing, json_lines
from rightcall.storage.journal import Journal
from rightcall.storage.streams import is_stream
from rightcall.strict_json import Undecodable, decode
from rightcall.types import Json

T = TypeVar("T")

VERSION = 1
MAX_BYTES = 256_000_000
_DEPTH = 400
KEPT_HEADERS = ("content-type", "retry-after", "retry-after-ms", "server", "openai-version")
CASSETTE = json_lines("cassette", "rightcall_cassette", VERSION)


class RecordedRequest(msgspec.Struct, frozen=True):
    """One request as recorded: method, path and body, without headers."""

    method: Literal["GET", "POST"]
    path: str
    body: Json | None = None


class RecordedResponse(msgspec.Struct, frozen=True):
    """One response as recorded: its chunks as they arrived, the milliseconds before each, and why it broke off, if it
    did.

    `status` 0 means that no answer began; `broken` says why.
    """

    status: Annotated[int, msgspec.Meta(ge=0, le=599)]
    headers: dict[str, str] = {}
    chunks: list[str | dict[str, str]] = []
    delays: list[int] = []
    broken: str = ""

    def pieces(self) -> list[bytes]:
        """Return the recorded chunks as bytes."""
        return [_decode_piece(chunk) for chunk in self.chunks]


class RecordedExchange(msgspec.Struct, frozen=True):
    """One recorded request and its response."""

    request: RecordedRequest
    response: RecordedResponse


class CassetteHead(msgspec.Struct, frozen=True):
    """The first line of a cassette: its version, and the settings of the recorded backend."""

    rightcall_cassette: int = VERSION
    api: str = "chat"
    model: str = ""
    mode: str = "native"
    profile: str = ""  # name of the server's profile, if it was known from the start
    native: bool = True  # whether the server takes tools


class Cassette(msgspec.Struct, frozen=True):
    """A cassette that was loaded from `path`."""

    path: str
    head: CassetteHead
    exchanges: tuple[RecordedExchange, ...]


# -- secrets -----------------------------------------------------------------------------------------------------------


def scrub_json(value: Any, *own: str) -> Any:
    """Return a copy of JSON data with secrets masked: those recognized by shape or field name, and the values `own`."""
    return Scrubber(own).value(value)


def scrub_response(
    status: int, headers: dict[str, str], pieces: list[bytes], delays: list[int], broken: str, *own: str
) -> RecordedResponse:
    """Return a response to record, without secrets in headers, body and `broken` (why it is incomplete), and with only
    the headers in `KEPT_HEADERS`. Pieces of the body that a secret spans are joined, and their delays added; `own` are
    known secret values."""
    scrubber = Scrubber(own)
    kept = {name: scrubber.text(headers[name]) for name in KEPT_HEADERS if name in headers}
    clean, waits = scrub_pieces(pieces, delays, scrubber)
    return RecordedResponse(status, kept, [_encode_piece(piece) for piece in clean], waits, scrubber.text(broken))


def _encode_piece(piece: bytes) -> str | dict[str, str]:
    """Return a piece of a response as text if it is valid UTF-8, otherwise as `{"base64": ...}`: it may be cut inside a
    character."""
    try:
        return piece.decode("utf-8")
    except UnicodeDecodeError:  # cut inside a character, which is worth keeping
        return {"base64": base64.b64encode(piece).decode("ascii")}


def _decode_piece(chunk: str | dict[str, str]) -> bytes:
    """Return the bytes of a recorded chunk, which is a text or `{"base64": ...}`; b"" for invalid base64."""
    if isinstance(chunk, str):
        return chunk.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(chunk.get("base64", ""), validate=True)
    except (binascii.Error, ValueError):
        return b""


# -- files -------------------------------------------------------------------------------------------------------------


def check_cassette(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Check that a cassette can be written to `path`; the file may exist or not.

    Raises `BadCassette` if the file is something else (unless `force`), or if its folder does not exist.
    """
    if is_stream(path):
        return
    try:
        found = existing(Path(path), CASSETTE, force=force)
    except NotOurs as error:
        raise BadCassette(str(error)) from None
    except FileFailed as error:
        raise BadCassette(f"{error}; name another file") from None
    if found is None and not Path(path).parent.is_dir():
        raise BadCassette(f"cannot write the cassette {str(path)!r}: its folder is not there; name another file")


def start_cassette(
    path: str | os.PathLike[str], head: CassetteHead, *first: RecordedExchange, fresh: bool = False, force: bool = False
) -> None:
    """Prepare a cassette for recording: write `head` if the file is new, and append the exchanges `first`. Existing
    exchanges stay, except a torn last line.

    `fresh` starts it anew; `force` also replaces a file that is not a cassette. Raises `BadCassette`, `FileFailed`.
    """
    check_cassette(path, force=force)
    with Journal(path, CASSETTE, torn="cut", fresh=fresh, force=force) as journal:
        begins: list[CassetteHead | RecordedExchange] = [head] if journal.is_empty or journal.begins_anew else []
        journal.append_bytes(b"".join([cassette_line(each) for each in (*begins, *first)]))
        journal.make_private()


def append_exchange(path: str | os.PathLike[str], recorded: RecordedExchange) -> None:
    """Append one exchange atomically.

    Raises `FileFailed`; the file then has its previous content.
    """
    with Journal(path, CASSETTE, torn="cut") as journal:
        journal.append_bytes(cassette_line(recorded))


class CassetteWriter:
    """Write exchanges to a cassette. With `fresh` or `force`, the old file is kept until the first exchange arrives."""

    def __init__(
        self, path: str | os.PathLike[str], head: CassetteHead, *, fresh: bool = False, force: bool = False
    ) -> None:
        self.path, self._head, self._fresh, self._force = path, head, fresh, force
        check_cassette(path, force=force)
        self._has_begun = not (fresh or force)
        if self._has_begun:
            start_cassette(path, head)

    def add(self, recorded: RecordedExchange) -> None:
        """Append one exchange to the file; if the file was to be replaced, the first exchange replaces it. Raises
        `FileFailed` or `BadCassette`."""
        if self._has_begun:
            append_exchange(self.path, recorded)
        else:
            start_cassette(self.path, self._head, recorded, fresh=self._fresh, force=self._force)
            self._has_begun = True


def cassette_line(value: CassetteHead | RecordedExchange) -> bytes:
    """Return the head or an exchange as one line of a cassette: JSON in ASCII, with a line feed."""
    return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode("ascii") + b"\n"


def load_cassette(path: str | os.PathLike[str]) -> Cassette:
    """Load the cassette at `path`. Raises `BadCassette` if it is unreadable, too large or not a cassette of this
    version; the message names the line that cannot be read."""
    name = str(path)
    try:
        with open(path, "rb") as file:
            is_long = os.fstat(file.fileno()).st_size > MAX_BYTES
            data = b"" if is_long else file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise BadCassette(f"cannot read the cassette {name!r}: {_error_reason(error)}") from None
    if is_long or len(data) > MAX_BYTES:
        raise BadCassette(f"the cassette {name!r} is larger than the limit of {MAX_BYTES:,} bytes")
    lines = data.split(b"\n")
    return Cassette(name, _parse_head(lines[0], name), tuple(_parse_exchanges(lines[1:], name)))


def _parse_exchanges(lines: list[bytes], name: str) -> Iterator[RecordedExchange]:
    """Yield the exchanges in the lines of a cassette after its first; blank lines are skipped. Raises `BadCassette`,
    which names the file `name` and the line, for one that cannot be read."""
    for number, line in enumerate(lines, start=2):
        if line.strip():
            yield _parse_line(line, RecordedExchange, f"{name!r}, line {number}")


def _parse_head(line: bytes, name: str) -> CassetteHead:
    """Parse the first line of the cassette file `name`. Raises `BadCassette` if it is not the head of a cassette of
    this version."""
    if b'"rightcall_cassette"' not in line:
        raise BadCassette(f"{name!r} is not a cassette: line 1 has no `rightcall_cassette`; record one with --record")
    head = _parse_line(line, CassetteHead, f"{name!r}, line 1")
    if head.rightcall_cassette != VERSION:
        raise BadCassette(
            f"the cassette {name!r} has version {head.rightcall_cassette}; this program reads version {VERSION}"
        )
    return head


def _parse_line(line: bytes, kind: type[T], where: str) -> T:
    """Parse one line of JSON as a value of the class `kind`. Raises `BadCassette`, which names the place `where`, if it
    is not JSON or does not fit."""
    value = decode(line.decode("utf-8", "replace"), _DEPTH)
    if isinstance(value, Undecodable):
        reason = value.message.replace("the arguments are", "it is")
        raise BadCassette(f"the cassette {where} cannot be read: {reason}; record it again")
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise BadCassette(f"the cassette {where} cannot be read: {error}; record it again") from None


def _error_reason(error: Exception) -> str:
    """Return the reason of an error, without the path in an `OSError`."""
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


_IGNORED = frozenset(("user", "metadata", "stream_options", "prompt_cache_key", "safety_identifier"))
_IDS = frozenset(("id", "call_id", "tool_call_id", "tool_use_id"))
_ARGUMENTS = frozenset(("input", "arguments"))  # of a call: an id in there was written by the model
_ROUTE = re.compile(
    r"/(?:v\d[^/]*/)?(?:chat/completions|completions|responses|messages|models)$|/api/\w+(?:/\w+)?$"
    r"|/v\d[^/]*/models/[^/:]+:\w+$"  # of Gemini
)


def canonical_request(asked: RecordedRequest) -> Json:
    """Return what identifies a request when two are compared: method, route, and the body without secrets and without
    fields that have no influence on the answer; call ids are replaced by numbers in order of appearance."""
    body = {name: value for name, value in (asked.body or {}).items() if name not in _IGNORED and value is not None}
    numbers: dict[str, str] = {}
    path, body = scrub_json([api_route(asked.path), body])
    return {"method": asked.method, "path": path, "body": _number_ids(body, numbers)}


def api_route(path: str) -> str:
    """Return the part of the URL path `path` that names the API, such as `/v1/chat/completions`, without the prefix of
    a base URL; for no known API the whole path. Without the query and a trailing slash in both cases."""
    path = path.partition("?")[0].rstrip("/")
    found = _ROUTE.search(path)
    return found.group() if found else path


def _number_ids(value: Any, numbers: dict[str, str]) -> Any:
    """Return a copy of JSON data with the value of every id field replaced by `id_N`, N being its order of first
    appearance. `numbers` maps the ids seen so far to their replacements and is extended."""
    if isinstance(value, list):
        return [_number_ids(each, numbers) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _number_field(name, each, numbers) for name, each in value.items()}


def _number_field(name: str, value: Any, numbers: dict[str, str]) -> Any:
    """Return the value of the field `name` with its ids replaced by numbers (`numbers` is extended): `id_N` for an id
    field, and for other values the same inside them. Call arguments stay as they are, since ids in them are the
    model's."""
    if name in _ARGUMENTS and isinstance(value, dict):
        return value
    if name in _IDS and isinstance(value, str):
        return numbers.setdefault(value, f"id_{len(numbers)}")
    return _number_ids(value, numbers)


def _request_key(asked: RecordedRequest) -> str:
    """Return a text that is equal for two requests if both get the same recorded answer."""
    return json.dumps(canonical_request(asked), sort_keys=True)


class RequestMatcher:
    """Return the recorded answer to each request. With `strict=False`, an unknown request gets the answer of the
    nearest one."""

    def __init__(self, cassette: Cassette, *, strict: bool = True) -> None:
        self._cassette, self._strict = cassette, strict
        self._by_key: dict[str, list[RecordedExchange]] = {}
        for exchange in cassette.exchanges:
            self._by_key.setdefault(_request_key(exchange.request), []).append(exchange)
        self._answered: Counter[str] = Counter()

    def answer(self, asked: RecordedRequest) -> RecordedExchange:
        """Return the next exchange recorded for a request; after the last one, the last one again. Raises
        `NotRecorded`, which names the nearest recorded request, if there is none; unless `strict`, a POST gets the
        nearest one instead."""
        key = _request_key(asked)
        if key not in self._by_key:
            near = self._nearest(asked)
            if self._strict or near is None or asked.method == "GET":
                raise NotRecorded(self._not_recorded_message(asked, near))
            key = _request_key(near.request)
        found = self._by_key[key]
        self._answered[key] += 1
        return found[min(self._answered[key], len(found)) - 1]

    def _nearest(self, asked: RecordedRequest) -> RecordedExchange | None:
        """Return the recorded exchange most similar to a request, of those with the same method, route and choice to
        stream; None if there is none."""
        wanted = set(leaf_values(canonical_request(asked)))
        best: tuple[float, RecordedExchange | None] = (-1.0, None)
        for exchange in self._cassette.exchanges:
            if not _is_comparable(asked, exchange.request):
                continue
            found = set(leaf_values(canonical_request(exchange.request)))
            score = len(wanted & found) / max(1, len(wanted | found))
            best = (score, exchange) if score > best[0] else best
        return best[1]

    def _not_recorded_message(self, asked: RecordedRequest, near: RecordedExchange | None) -> str:
        """Return the message for a request that was not recorded. It names the differences to `near`, the nearest
        recorded exchange, if there is one."""
        what = f"the cassette {self._cassette.path!r} has no answer to this {asked.method} {api_route(asked.path)}"
        cure = "record it again, or replay it leniently"
        if near is None:
            return f"{what}, nor to any like it ({len(self._cassette.exchanges)} exchanges); {cure}"
        number = self._cassette.exchanges.index(near) + 1
        found = "; ".join(list(describe_differences(canonical_request(asked), canonical_request(near.request)))[:3])
        return f"{what}; the nearest is exchange {number}, which differs {found}; {cure}"


def _is_comparable(one: RecordedRequest, other: RecordedRequest) -> bool:
    """Return whether two requests have the same method and route, and both stream or both do not."""
    streamed = [bool((each.body or {}).get("stream")) for each in (one, other)]
    return one.method == other.method and api_route(one.path) == api_route(other.path) and streamed[0] == streamed[1]


def leaf_values(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every leaf of JSON data as a pair of its path and its JSON text; an empty list or object is a leaf."""
    if isinstance(value, dict | list) and value:
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaf_values(each, f"{path}/{name}")
    else:
        yield path, json.dumps(value)


def describe_differences(here: Json, recorded: Json) -> Iterator[str]:
    """Yield one phrase for each place where a request (`here`) and a `recorded` one differ, with the path and both
    values; "nothing" stands for a missing value. Both are results of `canonical_request`."""
    ours, theirs = dict(leaf_values(here)), dict(leaf_values(recorded))
    for path in dict.fromkeys([*ours, *theirs]):
        one, other = ours.get(path, "nothing"), theirs.get(path, "nothing")
        if one != other:
            yield f"at {path.removeprefix('/body')}: {one[:60]} here, {other[:60]} recorded"
