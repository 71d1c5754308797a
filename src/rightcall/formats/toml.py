"""Read a user's format from TOML. It is data: nothing in it is executed or compiled.

    name = "mine"
    call = ["<call>", "</call>"]
    body = { kind = "envelope" }

The keys are the fields of `Format`, and `special`; `body` is a table (or an array of tables) whose `kind` is the body
kind in lower case. A marker is a string, or an array of alternatives. Every mistake is a `BadFormat` with place, cause
and cure. Whether a valid format also *works* is checked by the laws: `rightcall formats check`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Union, get_type_hints

import msgspec

from rightcall.formats.body_kinds import BODIES
from rightcall.formats.builtin import ALIASES, FORMATS
from rightcall.formats.spec import Body, Channels, Format, Protocol, marker_alternatives
from rightcall.formats.special_tokens import is_in_marker, mark_special_tokens
from rightcall.formats.toml_rules import (
    ANY_TEXT,
    LITERAL,
    MAX_LIST,
    OPTIONAL,
    FieldRule,
    check_count,
    check_each,
    check_marker,
    check_marker_text,
    check_pair,
    reject_field,
    suggest,
)

MAX_BYTES = 64 * 1024
MAX_BODIES = 8
# The standard parser takes quadratic time on a key of thousands of dotted parts; a key cannot span lines.
MAX_DOTS = 64

SPECIAL = "special"
_RESERVED = ("auto", "contract")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}").fullmatch
_ALIAS = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}").fullmatch


def format_from_toml(text: str) -> Format:
    """Return the format that a TOML text defines. Raises `BadFormat`, and nothing else, for any other text."""
    kinds = {kind.__struct_config__.tag: kind for kind in BODIES}
    data = _load_toml(text)
    special = _read_special_tokens(data.pop(SPECIAL, ()))
    _check_keys(data, kinds)
    try:
        written = msgspec.convert(data, _file_struct(tuple(BODIES)))
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at ")
        reject_field(
            where.strip("`$.") or "the file", what[0].lower() + what[1:], "docs/formats.md shows whole examples"
        )
    format = Format(**{field: getattr(written, field) for field in Format.__struct_fields__})
    check_format_value(format)
    for i, token in enumerate(special):
        if not is_in_marker(format, token):
            reject_field(f"{SPECIAL}[{i}]", f"no marker contains {token[:80]!r}", "write it exactly as in a marker")
    return mark_special_tokens(format, special)


def _read_special_tokens(given: Any) -> tuple[str, ...]:
    """Return the value under `special` of a format file as a tuple. Raises `BadFormat` unless it is an array of texts
    that are not empty, blank or too long."""
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        reject_field(SPECIAL, "it is no array of texts", 'write special = ["<|call|>"]')
    check_each(SPECIAL, given, LITERAL)
    return tuple(given)


def check_format_value(format: Format) -> None:
    """Raise `BadFormat` for the first rule that a format violates: those for a format file, so that a file could define
    it."""
    _check_names(format)
    _check_markers(format)
    if format.channels is not None:
        _check_channels(format.channels)
    if format.protocol is not None:
        _check_protocol(format)
    check_count("body", format.bodies, MAX_BODIES)
    if not format.bodies:
        reject_field("body", "it is empty", "say at least one body")
    for i, body in enumerate(format.bodies):
        BODIES[type(body)].check(body, f"body[{i}]" if isinstance(format.body, tuple) else "body", format)


@lru_cache(8)
def _file_struct(kinds: tuple[type[Body], ...]) -> type[msgspec.Struct]:
    """Return a struct type with the fields of `Format`, whose body is one or several of these kinds, to convert the
    table of a file to. Cached."""
    body = Union[kinds]  # type: ignore[valid-type]  # noqa: UP007 - of as many as there are
    types = {**get_type_hints(Format), "body": body | tuple[body, ...]}
    fields = [
        (field.name, types[field.name]) if field.required else (field.name, types[field.name], field.default)
        for field in msgspec.structs.fields(Format)
    ]
    return msgspec.defstruct("Format", fields, forbid_unknown_fields=True)


# -- from text to tables -----------------------------------------------------------------------------------------------


def _load_toml(text: str) -> dict[str, Any]:
    """Return the table of a TOML text. Raises `BadFormat` for invalid TOML, and for text beyond the limits on size
    and depth."""
    if not isinstance(text, str):
        reject_field("the file", f"the TOML must be text, not {type(text).__name__}", "decode it as UTF-8 first")
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        reject_field("the file", f"it is longer than {MAX_BYTES // 1024} KB", "a format takes a few lines")
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > MAX_DOTS:
            reject_field(f"line {number}", f"it has more than {MAX_DOTS} dots", "write tables instead of dotted keys")
    try:
        text.encode("utf-8")
        return tomllib.loads(text)
    except RecursionError:
        reject_field("the file", "it is nested too deeply", "a format needs three levels")
    except ValueError as error:  # bad TOML, a number too long to be read, lone surrogates
        reject_field("the file", f"it is no valid TOML ({str(error)[:200]})", "correct it there")


def _check_keys(data: dict[str, Any], kinds: Mapping[Any, type[Body]]) -> None:
    """Raise `BadFormat`, with a suggestion, for the first unknown key in the table of a format file or in its inner
    tables, and for an unknown body kind. `kinds` are the kinds by their names."""
    _check_table_keys(data, Format, "")
    if isinstance(data.get("channels"), dict):
        _check_table_keys(data["channels"], Channels, "channels.")
    if isinstance(data.get("protocol"), dict):
        _check_table_keys(data["protocol"], Protocol, "protocol.")
    body = data.get("body")
    places = {f"body[{i}].": each for i, each in enumerate(body)} if isinstance(body, list) else {"body.": body}
    for where, table in places.items():
        if isinstance(table, dict):
            _check_body_keys(table, kinds, where)


def _check_body_keys(table: dict[str, Any], kinds: Mapping[Any, type[Body]], where: str) -> None:
    """Raise `BadFormat` for a missing or unknown body kind in a table, and for a key that the kind does not have.
    `where` is the place of the table."""
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        cause = "it is missing" if kind is None else f"there is no body kind {str(kind)[:80]!r}"
        reject_field(where + "kind", cause, suggest(str(kind or ""), kinds))
    _check_table_keys({key: value for key, value in table.items() if key != "kind"}, kinds[kind], where)


def _check_table_keys(table: dict[str, Any], struct: type[msgspec.Struct], where: str) -> None:
    """Raise `BadFormat`, with a suggestion, for a key of a table that is no field of the struct. `where` is the place
    of the table."""
    known = (*struct.__struct_fields__, *([SPECIAL] if struct is Format else []))
    for key in table:
        if key not in known:
            reject_field(
                f"{where}{key[:80]!r}" if where else repr(key[:80]), "there is no such key", suggest(key, known)
            )


# -- names -------------------------------------------------------------------------------------------------------------


def _check_alias(where: str, word: str) -> None:
    """Raise `BadFormat` for a name or alias with invalid characters, and for one that is built in or reserved."""
    if not _ALIAS(word):
        reject_field(where, f"{word[:80]!r} is no format name", "write letters, digits and _ . -, at most 64")
    if word in FORMATS or word in ALIASES or word in _RESERVED:
        reject_field(where, f"{word!r} is built in and cannot be replaced", "choose another name")


def _check_names(format: Format) -> None:
    """Raise `BadFormat` for an invalid name, alias, list of models or tool listing of a format."""
    if not _NAME(format.name):
        reject_field(
            "name", f"{format.name[:80]!r} is no format name", "write a-z, 0-9 and _, a letter first, at most 64"
        )
    check_count("aliases", format.aliases, MAX_LIST)
    for i, word in enumerate((format.name, *format.aliases)):
        _check_alias(f"aliases[{i - 1}]" if i else "name", word)
    if len(format.models) > 256 or not format.models.isprintable():
        reject_field("models", "it is longer than 256 characters or not printable", "name the models in one line")
    listings = sorted({known.tools for known in FORMATS.values()})
    if format.tools not in listings:
        reject_field("tools", f"there is no listing {format.tools[:80]!r}", suggest(format.tools, listings))


def _check_markers(format: Format) -> None:
    """Raise `BadFormat` for an invalid marker of a format outside its body: section, call, reasoning, content, ends."""
    check_pair("section", format.section, LITERAL, LITERAL)
    check_pair("call", format.call, FieldRule(may=("name",), empty=True), OPTIONAL)
    check_marker_text("between", format.between, ANY_TEXT)
    check_pair("reasoning", format.reasoning, LITERAL, LITERAL)
    check_count("content", format.content, MAX_LIST)
    for i, pair in enumerate(format.content):
        check_pair(f"content[{i}]", pair, FieldRule(may=("name",), empty=True), LITERAL)
        if "{name}" in marker_alternatives(pair[0])[0]:
            reject_field(
                f"content[{i}][0]", "text has no name that could be written there", "put one without {name} first"
            )
    check_each("ends", format.ends, LITERAL)


def _check_channels(channels: Channels) -> None:
    """Raise `BadFormat` for invalid markers of channel headers, and unless `messages` says how a call is written."""
    check_marker("channels.start", channels.start, LITERAL)
    check_marker_text("channels.message", channels.message, FieldRule(blank=True))
    check_each("channels.ends", channels.ends, LITERAL)
    for field in ("to", "channel", "prefix"):
        check_marker_text(f"channels.{field}", getattr(channels, field), OPTIONAL)
    check_each("channels.kinds", channels.kinds, LITERAL)
    if "call" not in channels.messages:
        reject_field(
            "channels.messages", "it does not say how a call is written", 'add call = ["... {name} ...", "..."]'
        )
    for kind, (opens, closes) in channels.messages.items():
        need = ("name",) if kind == "call" else ()
        check_marker_text(f"channels.messages.{kind}[0]", opens, FieldRule(need=need))
        check_marker_text(f"channels.messages.{kind}[1]", closes, OPTIONAL)


def _check_protocol(format: Format) -> None:
    """Raise `BadFormat` if a format with a protocol also has a section or channels, or alternatives in its content."""
    assert format.protocol is not None
    check_each("protocol.done", format.protocol.done, LITERAL)
    if format.section is not None or format.channels is not None:
        reject_field("protocol", "there is a section or channels too", "write only one of the three")
    for i, (opens, closes) in enumerate(format.content):
        if isinstance(opens, tuple) or isinstance(closes, tuple) or not opens:
            reject_field(
                f"content[{i}]", "a block of a protocol has alternatives", "write one opening and one closing tag"
            )
