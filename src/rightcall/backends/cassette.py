"""A cassette: what was sent to a model and what came back, one exchange per line of JSON, fit for a repository.

    {"rightcall_cassette": 1, "api": "chat", "model": "m", "mode": "native"}
    {"request": {"method": "POST", "path": "/v1/chat/completions", "body": {...}},
     "response": {"status": 200, "headers": {...}, "chunks": ["data: ..."], "delays": [12], "broken": ""}}

It holds no secret that `rightcall.redaction` knows: no header that carries one is written, and bodies are scrubbed. The
file belongs to its owner alone (0600). Reading one believes nothing of it: sizes and depths are limited.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from rightcall.errors import BadCassette, FileFailed, NotOurs
from rightcall.redaction.pieces import without_secrets
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


class Asked(msgspec.Struct, frozen=True):
    """What was sent, without its headers."""

    method: Literal["GET", "POST"]
    path: str
    body: Json | None = None


class Response(msgspec.Struct, frozen=True):
    """What came: pieces as they came, milliseconds before each, and what broke it off, if something did.

    `status` 0 means that no answer began; `broken` says why.
    """

    status: Annotated[int, msgspec.Meta(ge=0, le=599)]
    headers: dict[str, str] = {}
    chunks: list[str | dict[str, str]] = []
    delays: list[int] = []
    broken: str = ""

    def pieces(self) -> list[bytes]:
        return [_bytes(chunk) for chunk in self.chunks]


class Recorded(msgspec.Struct, frozen=True):
    """One exchange."""

    request: Asked
    response: Response


class CassetteHead(msgspec.Struct, frozen=True):
    """The first line: what it is, and how the backend was set up."""

    rightcall_cassette: int = VERSION
    api: str = "chat"
    model: str = ""
    mode: str = "native"
    profile: str = ""  # the kind of server, where that was known from the start
    native: bool = True  # and whether it takes tools


class Cassette(msgspec.Struct, frozen=True):
    path: str
    head: CassetteHead
    exchanges: tuple[Recorded, ...]


# -- secrets -----------------------------------------------------------------------------------------------------------


def without_keys(value: Any, *own: str) -> Any:
    """JSON data without what is secret; `own` are keys that are known."""
    return Scrubber(own).value(value)


def response_of(
    status: int, headers: dict[str, str], pieces: list[bytes], delays: list[int], broken: str, *own: str
) -> Response:
    """A response as it may be written down. Pieces that a secret stands across are joined."""
    scrubber = Scrubber(own)
    kept = {name: scrubber.text(headers[name]) for name in KEPT_HEADERS if name in headers}
    clean, waits = without_secrets(pieces, delays, scrubber)
    return Response(status, kept, [_text(piece) for piece in clean], waits, scrubber.text(broken))


def _text(piece: bytes) -> str | dict[str, str]:
    try:
        return piece.decode("utf-8")
    except UnicodeDecodeError:  # cut inside a character, which is worth keeping
        return {"base64": base64.b64encode(piece).decode("ascii")}


def _bytes(chunk: str | dict[str, str]) -> bytes:
    if isinstance(chunk, str):
        return chunk.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(chunk.get("base64", ""), validate=True)
    except (binascii.Error, ValueError):
        return b""


# -- files -------------------------------------------------------------------------------------------------------------


def check(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Raises `BadCassette` if the file is something else (unless forced), or if its folder is not there."""
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


def start(
    path: str | os.PathLike[str], head: CassetteHead, *first: Recorded, fresh: bool = False, force: bool = False
) -> None:
    """Makes the file ready to be written to. What it holds stays, but for a last line that was torn; with `fresh` it
    begins anew, and with `force` so does one that is no cassette. Raises `BadCassette`, `FileFailed`."""
    check(path, force=force)
    with Journal(path, CASSETTE, torn="cut", fresh=fresh, force=force) as journal:
        begins: list[CassetteHead | Recorded] = [head] if journal.is_empty or journal.begins_anew else []
        journal.append_bytes(b"".join([cassette_line(each) for each in (*begins, *first)]))
        journal.make_private()


def append(path: str | os.PathLike[str], recorded: Recorded) -> None:
    """One more line, whole or not at all. Raises `FileFailed`; what was there before is there then."""
    with Journal(path, CASSETTE, torn="cut") as journal:
        journal.append_bytes(cassette_line(recorded))


class Tape:
    """A cassette that is recorded to. What is to go is there until the first exchange has come."""

    def __init__(
        self, path: str | os.PathLike[str], head: CassetteHead, *, fresh: bool = False, force: bool = False
    ) -> None:
        self.path, self._head, self._fresh, self._force = path, head, fresh, force
        check(path, force=force)
        self._has_begun = not (fresh or force)
        if self._has_begun:
            start(path, head)

    def add(self, recorded: Recorded) -> None:
        if self._has_begun:
            append(self.path, recorded)
        else:
            start(self.path, self._head, recorded, fresh=self._fresh, force=self._force)
            self._has_begun = True


def cassette_line(value: CassetteHead | Recorded) -> bytes:
    """A line of a cassette: its first one, or an exchange."""
    return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode("ascii") + b"\n"


def load(path: str | os.PathLike[str]) -> Cassette:
    """The cassette in a file. Raises `BadCassette`, naming the line that cannot be read."""
    name = str(path)
    try:
        with open(path, "rb") as file:
            is_long = os.fstat(file.fileno()).st_size > MAX_BYTES
            data = b"" if is_long else file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise BadCassette(f"cannot read the cassette {name!r}: {_why(error)}") from None
    if is_long or len(data) > MAX_BYTES:
        raise BadCassette(f"the cassette {name!r} is larger than {MAX_BYTES:,} bytes; nothing that long is read")
    lines = data.split(b"\n")
    return Cassette(name, _head(lines[0], name), tuple(_exchanges(lines[1:], name)))


def _exchanges(lines: list[bytes], name: str) -> Iterator[Recorded]:
    for number, line in enumerate(lines, start=2):
        if line.strip():
            yield _read(line, Recorded, f"{name!r}, line {number}")


def _head(line: bytes, name: str) -> CassetteHead:
    if b'"rightcall_cassette"' not in line:
        raise BadCassette(f"{name!r} is no cassette: its first line does not say so; make one with --record")
    head = _read(line, CassetteHead, f"{name!r}, line 1")
    if head.rightcall_cassette != VERSION:
        raise BadCassette(
            f"the cassette {name!r} is of version {head.rightcall_cassette}; this reads version {VERSION}"
        )
    return head


def _read(line: bytes, kind: type[T], where: str) -> T:
    value = decode(line.decode("utf-8", "replace"), _DEPTH)
    if isinstance(value, Undecodable):
        reason = value.message.replace("the arguments are", "it is")
        raise BadCassette(f"the cassette {where} cannot be read: {reason}; record it again")
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise BadCassette(f"the cassette {where} cannot be read: {error}; record it again") from None


def _why(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
