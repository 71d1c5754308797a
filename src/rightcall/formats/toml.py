"""A user's own format, read from TOML. Data only: nothing in it is executed or compiled as an expression of theirs.

    name = "mine"
    call = ["<call>", "</call>"]
    body = { kind = "envelope" }

The keys are the fields of `Format`; `body` is a table (or an array of tables) whose `kind` is the body kind in small
letters. A marker is a string, or an array of alternatives. Every mistake is a `BadFormat` that says where, why and what
to write instead. Whether a format that reads well also *works* is for the laws to say: `rightcall formats check`.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn

import msgspec

from rightcall.errors import BadFormat
from rightcall.formats import ALIASES, FORMATS
from rightcall.formats.spec import (
    Body,
    Braced,
    Channels,
    Envelope,
    Format,
    Marker,
    NameThenJson,
    Pair,
    Params,
    Protocol,
    Pythonic,
    TsCall,
    alternatives,
)

MAX_BYTES = 64 * 1024
MAX_MARKER = 128
MAX_LIST = 32  # alternatives of a marker, end tokens, words of a table
MAX_BODIES = 8
# The standard parser takes quadratic time on a key of thousands of dotted parts; a key cannot span lines.
MAX_DOTS = 64

_KINDS: dict[str, type[Body]] = {
    "envelope": Envelope,
    "namethenjson": NameThenJson,
    "params": Params,
    "pythonic": Pythonic,
    "braced": Braced,
    "tscall": TsCall,
}
_RESERVED = ("auto", "contract")
_HOLES = ("name", "key", "type", "id", "index", "number")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}").fullmatch
_ALIAS = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}").fullmatch
_LABEL = re.compile(r"[A-Za-z_][\w\-]{0,39}").fullmatch
_HOLE = re.compile(r"\{([A-Za-z_]\w*)\}")
# White space with a line break is optional when a marker is read, so that it does not keep two holes apart.
_ADJACENT = re.compile(r"\{(\w+)\}(?:[ \t\r]*\n[ \t\r\n]*)?\{(\w+)\}")
_ENDS_IN_HOLE = re.compile(r"\{(?:key|type)\}[ \t]*\Z").search
_UNFIT_KEY = re.compile(r'["\\\x00-\x1f]').search
_UNFIT_WORD = re.compile(r'[<>"\s]').search


def format_from_toml(text: str) -> Format:
    """The format that this TOML text defines. Raises `BadFormat`, and nothing else, whatever the text is."""
    data = _load(text)
    _known_keys(data)
    try:
        format = msgspec.convert(data, Format)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at ")
        _refuse(where.strip("`$.") or "the file", what[0].lower() + what[1:], "docs/formats.md shows whole examples")
    _check_names(format)
    _check_around(format)
    if format.channels is not None:
        _check_channels(format.channels)
    if format.protocol is not None:
        _check_protocol(format)
    _at_most("body", format.bodies, MAX_BODIES)
    if not format.bodies:
        _refuse("body", "it is empty", "say at least one body")
    for i, body in enumerate(format.bodies):
        _check_body(f"body[{i}]" if isinstance(format.body, tuple) else "body", body, format)
    return format


def _refuse(where: str, cause: str, cure: str) -> NoReturn:
    raise BadFormat(f"format file, {where}: {cause}; {cure}")


def _nearest(word: str, known: Iterable[str]) -> str:
    known = list(known)
    near = difflib.get_close_matches(word[:64], known, 1, 0.4)
    return f"did you mean {near[0]!r}?" if near else "known: " + ", ".join(known)


# -- from text to tables -----------------------------------------------------------------------------------------------


def _load(text: str) -> dict[str, Any]:
    if not isinstance(text, str):
        _refuse("the file", f"the TOML must be text, not {type(text).__name__}", "decode it as UTF-8 first")
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        _refuse("the file", f"it is longer than {MAX_BYTES // 1024} KB", "a format takes a few lines")
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > MAX_DOTS:
            _refuse(f"line {number}", f"it has more than {MAX_DOTS} dots", "write tables instead of dotted keys")
    try:
        text.encode("utf-8")
        return tomllib.loads(text)
    except RecursionError:
        _refuse("the file", "it is nested too deeply", "a format needs three levels")
    except ValueError as error:  # bad TOML, a number too long to be read, lone surrogates
        _refuse("the file", f"it is no valid TOML ({str(error)[:200]})", "correct it there")


def _known_keys(data: dict[str, Any]) -> None:
    _only(data, Format, "")
    if isinstance(data.get("channels"), dict):
        _only(data["channels"], Channels, "channels.")
    if isinstance(data.get("protocol"), dict):
        _only(data["protocol"], Protocol, "protocol.")
    body = data.get("body")
    bodies = body if isinstance(body, list) else [body]
    for i, table in enumerate(bodies):
        if not isinstance(table, dict):
            continue
        where = f"body[{i}]." if isinstance(body, list) else "body."
        kind = table.get("kind")
        if not isinstance(kind, str) or kind not in _KINDS:
            said = "it is missing" if kind is None else f"there is no body kind {str(kind)[:80]!r}"
            _refuse(where + "kind", said, _nearest(str(kind or ""), _KINDS))
        _only({key: value for key, value in table.items() if key != "kind"}, _KINDS[kind], where)


def _only(table: dict[str, Any], struct: type[msgspec.Struct], where: str) -> None:
    known = struct.__struct_fields__
    for key in table:
        if key not in known:
            _refuse(f"{where}{key[:80]!r}" if where else repr(key[:80]), "there is no such key", _nearest(key, known))


# -- names -------------------------------------------------------------------------------------------------------------


def _check_names(format: Format) -> None:
    if not _NAME(format.name):
        _refuse("name", f"{format.name[:80]!r} is no format name", "write a-z, 0-9 and _, a letter first, at most 64")
    _at_most("aliases", format.aliases, MAX_LIST)
    for i, word in enumerate((format.name, *format.aliases)):
        where = f"aliases[{i - 1}]" if i else "name"
        if not _ALIAS(word):
            _refuse(where, f"{word[:80]!r} is no format name", "write letters, digits and _ . -, at most 64")
        if word in FORMATS or word in ALIASES or word in _RESERVED:
            _refuse(where, f"{word!r} is built in and cannot be replaced", "choose another name")
    if len(format.models) > 256 or not format.models.isprintable():
        _refuse("models", "it is longer than 256 characters or not printable", "name the models in one line")
    listings = sorted({known.tools for known in FORMATS.values()})
    if format.tools not in listings:
        _refuse("tools", f"there is no listing {format.tools[:80]!r}", _nearest(format.tools, listings))


def _at_most(where: str, values: Iterable[object], most: int) -> None:
    count = len(list(values))
    if count > most:
        _refuse(where, f"it has {count} entries", f"write at most {most}")


# -- markers -----------------------------------------------------------------------------------------------------------


class _Rule(NamedTuple):
    """What a marker may hold. `need` must be in every alternative; `empty` says whether one may be empty."""

    may: tuple[str, ...] = ()
    need: tuple[str, ...] = ()
    empty: bool = False
    blank: bool = False  # white space alone will do


_LITERAL = _Rule()
_OPTIONAL = _Rule(empty=True)
_ANY_TEXT = _Rule(empty=True, blank=True)
_OPENER = _Rule(may=("name", "id", "index", "number"), need=("name",))


def _marker(where: str, marker: Marker, rule: _Rule) -> None:
    texts = alternatives(marker)
    if not texts:
        _refuse(where, "it has no alternatives", "write a string, or an array of at least one")
    _at_most(where, texts, MAX_LIST)
    for text in texts:
        _template(where, text, rule)


def _template(where: str, text: str, rule: _Rule) -> None:
    if len(text) > MAX_MARKER:
        _refuse(where, f"a marker of {len(text)} characters", f"write at most {MAX_MARKER}")
    if not text:
        if not rule.empty:
            _refuse(where, "the marker is empty", f"write 1-{MAX_MARKER} characters")
        return
    if not rule.blank and not text.strip():
        _refuse(where, "the marker is only white space, which is optional when read", "write a visible marker")
    _holes(where, text, rule)


def _holes(where: str, text: str, rule: _Rule) -> None:
    allowed = (*rule.need, *(hole for hole in rule.may if hole not in rule.need))
    holes = _HOLE.findall(text)
    for hole in holes:
        if hole not in _HOLES:
            _refuse(where, f"there is no hole {{{hole[:40]}}}", _nearest(hole, _HOLES))
        if hole not in allowed:
            cure = f"only {', '.join(allowed)} may stand here" if allowed else "write it without holes"
            _refuse(where, f"the hole {{{hole}}} has no meaning here", cure)
        if holes.count(hole) > 1:
            _refuse(where, f"the hole {{{hole}}} occurs twice", "write it once")
    for hole in rule.need:
        if hole not in holes:
            _refuse(where, f"{text[:80]!r} lacks the hole {{{hole}}}", f"put {{{hole}}} where the {hole} stands")
    if found := _ADJACENT.search(text):
        first, second = found.groups()
        _refuse(where, f"nothing tells {{{first}}} from {{{second}}}", "put literal text between the two holes")


def _pair(where: str, pair: Pair | None, opens: _Rule, closes: _Rule) -> None:
    if pair is not None:
        _marker(f"{where}[0]", pair[0], opens)
        _marker(f"{where}[1]", pair[1], closes)


def _each(where: str, texts: Iterable[str], rule: _Rule) -> None:
    texts = list(texts)
    _at_most(where, texts, MAX_LIST)
    for i, text in enumerate(texts):
        _template(f"{where}[{i}]", text, rule)


def _check_around(format: Format) -> None:
    _pair("section", format.section, _LITERAL, _LITERAL)
    _pair("call", format.call, _Rule(may=("name",), empty=True), _OPTIONAL)
    _template("between", format.between, _ANY_TEXT)
    _pair("reasoning", format.reasoning, _LITERAL, _LITERAL)
    _at_most("content", format.content, MAX_LIST)
    for i, pair in enumerate(format.content):
        _pair(f"content[{i}]", pair, _OPTIONAL, _LITERAL)
    _each("ends", format.ends, _LITERAL)


def _check_channels(channels: Channels) -> None:
    _marker("channels.start", channels.start, _LITERAL)
    _template("channels.message", channels.message, _Rule(blank=True))
    _each("channels.ends", channels.ends, _LITERAL)
    for field in ("to", "channel", "prefix"):
        _template(f"channels.{field}", getattr(channels, field), _OPTIONAL)
    _each("channels.kinds", channels.kinds, _LITERAL)
    if "call" not in channels.messages:
        _refuse("channels.messages", "it does not say how a call is written", 'add call = ["... {name} ...", "..."]')
    for kind, (opens, closes) in channels.messages.items():
        need = ("name",) if kind == "call" else ()
        _template(f"channels.messages.{kind}[0]", opens, _Rule(need=need))
        _template(f"channels.messages.{kind}[1]", closes, _OPTIONAL)


def _check_protocol(format: Format) -> None:
    assert format.protocol is not None
    _each("protocol.done", format.protocol.done, _LITERAL)
    if format.section is not None or format.channels is not None:
        _refuse("protocol", "there is a section or channels too", "write only one of the three")
    for i, (opens, closes) in enumerate(format.content):
        if isinstance(opens, tuple) or isinstance(closes, tuple) or not opens:
            _refuse(f"content[{i}]", "a block of a protocol has alternatives", "write one opening and one closing tag")


# -- bodies ------------------------------------------------------------------------------------------------------------


def _check_body(where: str, body: Body, format: Format) -> None:
    if isinstance(body, Envelope):
        _check_envelope(where, body)
    elif isinstance(body, NameThenJson):
        _check_name_then_json(where, body, alone=format.channels is None and len(format.bodies) == 1)
    elif isinstance(body, Params):
        _check_params(where, body)
    elif isinstance(body, Pythonic):
        _each(f"{where}.wrap", body.wrap, _ANY_TEXT)
    elif isinstance(body, TsCall):
        _check_labels(f"{where}.labels", body.labels)
        if "" in alternatives(format.call[0]) or not any(alternatives(format.call[1])):
            _refuse(where, "without markers around a call nothing tells it from text", "write call with both markers")
    else:
        _marker(f"{where}.open", body.open, _OPENER)
        _template(f"{where}.quote", body.quote, _LITERAL)


def _check_envelope(where: str, body: Envelope) -> None:
    for field in ("names", "args", "ids", "outer"):
        keys = getattr(body, field)
        _each(f"{where}.{field}", keys, _LITERAL)
        for key in keys:
            _json_key(f"{where}.{field}", key)
    _template(f"{where}.content", body.content, _OPTIONAL)
    _json_key(f"{where}.content", body.content)
    _each(f"{where}.wrap", body.wrap or (), _ANY_TEXT)
    if not body.args and body.names:
        _refuse(f"{where}.args", "it is empty", "name the key that holds the arguments")
    if body.write_id and not body.ids:
        _refuse(f"{where}.ids", "it is empty, and write_id wants an id written", "name the key that holds the id")


def _json_key(where: str, key: str) -> None:
    if _UNFIT_KEY(key):
        _refuse(where, f"the key {key[:80]!r} has quotes, backslashes or control characters", "write a plain key")


def _check_name_then_json(where: str, body: NameThenJson, *, alone: bool) -> None:
    if body.open:
        _marker(f"{where}.open", body.open, _OPENER)
    elif alone:
        _refuse(f"{where}.open", "without it nothing says the name of the call", "write a marker with {name}")
    _marker(f"{where}.close", body.close, _OPTIONAL)
    _template(f"{where}.id", body.id, _Rule(may=_OPENER.may, empty=True))


def _check_params(where: str, body: Params) -> None:
    typed = ("type",) if body.types else ()
    _marker(f"{where}.open", body.open, _OPENER)
    _marker(f"{where}.param", body.param, _Rule(need=("key", *typed)))
    _marker(f"{where}.value_close", body.value_close, _Rule(may=("key",), empty=True))
    if not alternatives(body.value_close)[0]:
        _refuse(f"{where}.value_close", "the marker is empty", "the first one is written and must be visible")
    _marker(f"{where}.close", body.close, _OPTIONAL)
    _marker(f"{where}.empty", body.empty, _Rule(may=_OPENER.may, need=("name",), empty=True))
    _template(f"{where}.item", body.item, _OPTIONAL)
    _each(f"{where}.quote", body.quote or (), _LITERAL)
    for text in alternatives(body.param):
        if _ENDS_IN_HOLE(text):
            _refuse(f"{where}.param", f"nothing tells the end of {text[:80]!r} from the value", "end it with a literal")
    _check_types(f"{where}.types", body.types)
    _check_escapes(f"{where}.escapes", body.escapes)


def _check_escapes(where: str, escapes: dict[str, str]) -> None:
    _each(where, escapes.values(), _LITERAL)
    for char, written in escapes.items():
        if len(char) != 1 or len(written) < 2 or written[0] not in escapes:
            cure = "write one character and what stands for it, which begins with a character that is escaped too"
            _refuse(where, f"{char[:80]!r} = {written[:80]!r} is no escape", cure)
    if escapes and '"' not in escapes:
        _refuse(where, "the quotation mark has no escape", "a key ends at one: say how it is written")


def _check_labels(where: str, labels: tuple[str, ...]) -> None:
    _each(where, labels, _LITERAL)
    for label in labels:
        if not _LABEL(label):
            _refuse(where, f"{label[:80]!r} is no label", "write a word of letters, digits, _ and -, at most 40")


def _check_types(where: str, types: dict[str, Any]) -> None:
    _each(where, types, _LITERAL)
    for word in types:
        if len(word) > 32 or _UNFIT_WORD(word):
            _refuse(where, f"{word[:80]!r} is no type word", "write 1-32 characters without blanks, quotes, < or >")
    if types and set(types.values()) != {"string", "json"}:
        _refuse(
            where, "it must have a word for string and one for json", 'for example { text = "string", other = "json" }'
        )
