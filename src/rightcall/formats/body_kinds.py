"""The body kinds: how each kind of body writes a call, which markers it has, and which format files are valid for it.

`BODIES` has one `BodyKind` for each subclass of `Body`; all other code distinguishes kinds only by
these objects. `parsing.bodies` parses each kind, and `constrain.call_bodies` has its grammar.

    class Pairs(Body, frozen=True): ...                  the data: what one format of this kind is made of
    class PairsKind(BodyKind[Pairs]): ...                how it is written and checked
    BODIES = {..., Pairs: PairsKind()}
"""

from __future__ import annotations

import re
from typing import Any, Generic, TypeVar

import msgspec

from rightcall.formats.spec import (
    HOLES,
    Body,
    Braced,
    Envelope,
    Format,
    Marker,
    NameThenJson,
    Params,
    Pythonic,
    TsCall,
    escape_name,
    marker_alternatives,
)
from rightcall.formats.toml_rules import (
    ANY_TEXT,
    LITERAL,
    OPENER,
    OPTIONAL,
    FieldRule,
    check_each,
    check_json_key,
    check_marker,
    check_marker_text,
    reject_field,
)
from rightcall.parsing.values.notation import closing
from rightcall.strict_json import encode
from rightcall.types import Call

B = TypeVar("B", bound=Body)
Wrap = tuple[str, str, str]
KeyPair = tuple[tuple[str, ...], tuple[str, ...]]
_is_name = re.compile(HOLES["name"]).fullmatch
_is_function_name = re.compile(r"[^\W\d][\w.\-]{0,255}").fullmatch  # a name before a parenthesis


class BodyKind(Generic[B]):
    first = ""
    """The characters with which a call without an opening marker begins; it can only start a reply."""
    holds_json = False
    """The arguments are one JSON object."""
    named_by_header = False
    """In a channel's message the header contains the name, and the message contains only the arguments."""
    declared_only = False
    """A grammar of arbitrary arguments needs their names, because each name is part of a marker."""
    lines = False
    """Several calls are written on separate lines, with nothing else between them."""
    found_on_lines = False
    """A line that is a call is parsed as one outside the blocks of a protocol too."""
    is_object = False
    """A call is one JSON object that contains its name and its arguments."""

    def write(self, body: B, call: Call, arguments: str, index: int) -> str:
        """Return the text of one call, without the markers of the format. `arguments` is the JSON of its arguments,
        `index` the position of the call in the reply."""
        raise NotImplementedError

    def markers(self, body: B) -> tuple[Marker, ...]:
        """Return every marker of the body, and other texts with a meaning in it: tests make hostile texts of them."""
        return ()

    def check(self, body: B, where: str, format: Format) -> None:
        """Raise `BadFormat` if a format file must not contain this body, which belongs to `format`; `where` is its
        place in the file. Return nothing if it may."""

    # -- the markers by which a call is found --------------------------------------------------------------------------

    def opening(self, body: B) -> tuple[Marker, ...]:
        """Return the tags by which a call is found in text, the one before the arguments first; () if there are
        none."""
        return ()

    def param_opening(self, body: B) -> Marker:
        """Return the marker before an argument whose value is raw text; "" if there is none."""
        return ""

    def value_closing(self, body: B) -> Marker:
        """Return the marker that ends a value of raw text; "" if there is none."""
        return ""

    def closing(self, body: B) -> Marker:
        """Return the marker that ends the body; "" if there is none."""
        return ""

    def wrap(self, body: B) -> Wrap | None:
        """Return what is written before, between and after several calls in one block; None if a block has one call."""
        return None

    def keys(self, body: B) -> KeyPair | None:
        """Return the keys of the name and the keys of the arguments, of which the first is written; None unless a call
        is one object with both."""
        return None

    def outer(self, body: B) -> tuple[str, ...]:
        """Return the keys of the list of calls, of which the first is written, if a reply is one object with all calls;
        otherwise ()."""
        return ()

    def content_key(self, body: B) -> str:
        """Return the key of the text for the user, if a reply is one object; otherwise ""."""
        return ""

    def is_named_outside(self, body: B) -> bool:
        """Return whether the body contains only arguments, because a header or the request contains the name."""
        return False

    def carries_name(self, body: B, name: str) -> bool:
        """Return whether the body can be written with this name so that it is parsed with the same name."""
        return bool(_is_name(name))


def first_alternative(marker: Marker) -> str:
    """Return the first alternative of a marker, which is the one that is written."""
    return marker_alternatives(marker)[0]


def fill_marker(marker: Marker, call: Call, index: int) -> str:
    """Return the first alternative of a marker with the name, id and numbers of a call in its holes. A call without an
    id gets `call_` and its index."""
    text = first_alternative(marker).replace("{name}", call.name).replace("{id}", call.id or f"call_{index}")
    return text.replace("{index}", str(index)).replace("{number}", str(index + 1))


# -- JSON envelopes ----------------------------------------------------------------------------------------------------


class EnvelopeKind(BodyKind[Envelope]):
    first = "[{"
    holds_json = True
    is_object = True

    def write(self, body: Envelope, call: Call, arguments: str, index: int) -> str:
        """Return a JSON object with name and arguments, and the id where the body asks for it."""
        name = encode(call.name)
        if not body.names:
            return f"{{{name}: {arguments}}}"
        fields = [f'"{body.names[0]}": {name}', f'"{body.args[0]}": {arguments}']
        if body.write_id:
            id = f'"{body.ids[0]}": {encode(call.id or str(index))}'
            fields = [id, *fields] if body.write_id == "first" else [*fields, id]
        return "{" + ", ".join(fields) + "}"

    def markers(self, body: Envelope) -> tuple[Marker, ...]:
        """Return the texts before, between and after several calls; () if a block has one call."""
        return body.wrap or ()

    def wrap(self, body: Envelope) -> Wrap | None:
        """Return the texts before, between and after several calls; None if a block has one call."""
        return body.wrap

    def keys(self, body: Envelope) -> KeyPair | None:
        """Return the keys of the name and the keys of the arguments; None if the name itself is the key."""
        return (body.names, body.args) if body.names else None

    def outer(self, body: Envelope) -> tuple[str, ...]:
        """Return the keys that hold the call or the list of calls; () if the call itself is the object."""
        return body.outer

    def content_key(self, body: Envelope) -> str:
        """Return the key that holds text for the user; "" if there is none."""
        return body.content

    def carries_name(self, body: Envelope, name: str) -> bool:
        """Return True: any name can be written as a JSON string."""
        return True

    def check(self, body: Envelope, where: str, format: Format) -> None:
        """Raise `BadFormat` for invalid keys or markers, for empty `args` with `names`, and for `write_id` without
        `ids`."""
        for field in ("names", "args", "ids", "outer"):
            keys = getattr(body, field)
            check_each(f"{where}.{field}", keys, LITERAL)
            for key in keys:
                check_json_key(f"{where}.{field}", key)
        check_marker_text(f"{where}.content", body.content, OPTIONAL)
        check_json_key(f"{where}.content", body.content)
        check_each(f"{where}.wrap", body.wrap or (), ANY_TEXT)
        if not body.args and body.names:
            reject_field(f"{where}.args", "it is empty", "name the key that holds the arguments")
        if body.write_id and not body.ids:
            reject_field(f"{where}.ids", "it is empty, and write_id requires an id", "name the key that holds the id")


# -- a name, then JSON -------------------------------------------------------------------------------------------------


class NameThenJsonKind(BodyKind[NameThenJson]):
    holds_json = True
    named_by_header = True

    def write(self, body: NameThenJson, call: Call, arguments: str, index: int) -> str:
        """Return the opening marker with the name, the arguments as JSON, and the closing marker."""
        return fill_marker(body.open, call, index) + arguments + first_alternative(body.close)

    def markers(self, body: NameThenJson) -> tuple[Marker, ...]:
        """Return the marker with the name and the marker after the arguments."""
        return (body.open, body.close)

    def opening(self, body: NameThenJson) -> tuple[Marker, ...]:
        """Return the marker with the name as a tuple of one."""
        return (body.open,)

    def closing(self, body: NameThenJson) -> Marker:
        """Return the marker after the arguments; "" if there is none."""
        return body.close

    def is_named_outside(self, body: NameThenJson) -> bool:
        """Return whether the marker before the arguments is empty, because a header or the request contains the
        name."""
        return not first_alternative(body.open)

    def check(self, body: NameThenJson, where: str, format: Format) -> None:
        """Raise `BadFormat` for invalid markers, and for an opening marker without a name unless a header has it."""
        if body.open:
            check_marker(f"{where}.open", body.open, OPENER)
        elif format.channels is None and len(format.bodies) == 1:
            reject_field(f"{where}.open", "without it a call has no name", "write a marker with {name}")
        check_marker(f"{where}.close", body.close, OPTIONAL)
        check_marker_text(f"{where}.id", body.id, FieldRule(may=("name", "id", "index", "number"), empty=True))


# -- tagged arguments --------------------------------------------------------------------------------------------------

_ENDS_IN_HOLE = re.compile(r"\{(?:key|type)\}[ \t]*\Z").search
_ITEM = re.compile(r'[^<>"\s/]{1,64}').fullmatch
_UNFIT_WORD = re.compile(r'[<>"\s]').search
_JSON_TYPES = {bool: "boolean", int: "number", float: "number", dict: "object", list: "array", type(None): "null"}


class ParamsKind(BodyKind[Params]):
    declared_only = True

    def write(self, body: Params, call: Call, arguments: str, index: int) -> str:
        """Return the opening marker with the name, each argument in its tags, and the closing marker; `arguments` is
        not used."""
        inside = "".join([_write_param(body, key, value) for key, value in call.arguments.items()])
        call = msgspec.structs.replace(call, name=escape_name(body, call.name)) if body.escapes else call
        return fill_marker(body.open, call, index) + inside + first_alternative(body.close)

    def markers(self, body: Params) -> tuple[Marker, ...]:
        """Return all markers of the body: around call, argument and value, of a call without arguments, of quotes, and
        of JSON arguments."""
        return (
            body.open,
            body.param,
            body.value_close,
            body.close,
            body.empty,
            *(body.quote or ()),
            *(body.json or ()),
        )

    def opening(self, body: Params) -> tuple[Marker, ...]:
        """Return the marker with the name, and the marker of a call without arguments, which may be empty."""
        return (body.open, body.empty)

    def closing(self, body: Params) -> Marker:
        """Return the marker after the last value; "" if there is none."""
        return body.close

    def param_opening(self, body: Params) -> Marker:
        """Return the marker before a value, with its key."""
        return body.param

    def value_closing(self, body: Params) -> Marker:
        """Return the marker after a value."""
        return body.value_close

    def check(self, body: Params, where: str, format: Format) -> None:
        """Raise `BadFormat` for invalid markers, tags that cannot be nested although the body has `item`, and invalid
        type words or escapes."""
        typed = ("type",) if body.types else ()
        check_marker(f"{where}.open", body.open, OPENER)
        check_marker(f"{where}.param", body.param, FieldRule(may=typed, need=("key",)))
        # The first alternative is written and must contain the type; a model may omit it.
        check_marker_text(f"{where}.param", first_alternative(body.param), FieldRule(need=("key", *typed)))
        check_marker(f"{where}.value_close", body.value_close, FieldRule(may=("key",), empty=True))
        if not marker_alternatives(body.value_close)[0]:
            reject_field(f"{where}.value_close", "the marker is empty", "the first one is written and must be visible")
        check_marker(f"{where}.close", body.close, OPTIONAL)
        check_marker(f"{where}.empty", body.empty, FieldRule(may=OPENER.may, need=("name",), empty=True))
        check_marker_text(f"{where}.item", body.item, OPTIONAL)
        _check_item(where, body)
        check_each(f"{where}.quote", body.quote or (), LITERAL)
        check_each(f"{where}.json", body.json or (), LITERAL)
        for text in marker_alternatives(body.param):
            if _ENDS_IN_HOLE(text):
                cause = f"nothing separates the end of {text[:80]!r} from the value"
                reject_field(f"{where}.param", cause, "end it with a literal")
        _check_types(f"{where}.types", body.types)
        _check_escapes(f"{where}.escapes", body.escapes)


def _check_item(where: str, body: Params) -> None:
    """Raise `BadFormat` if the body has nested tags (`item`) that cannot be found by their keys: both tags of an
    argument must contain the key after a literal, and no type."""
    if not body.item:
        return
    if not _ITEM(body.item):
        reject_field(
            f"{where}.item", f"{body.item[:80]!r} is not the name of a tag", "write its name alone, such as item"
        )
    for field, tag in (("param", first_alternative(body.param)), ("value_close", first_alternative(body.value_close))):
        if "{key}" not in tag or tag.strip().startswith("{key}") or "{type}" in tag:
            reject_field(
                f"{where}.{field}", f"{tag[:80]!r} cannot be nested, which item requires", "write <{key}> and </{key}>"
            )


def _check_types(where: str, types: dict[str, Any]) -> None:
    """Raise `BadFormat` for an invalid type word, and unless there is a word for "string" and one for "json", or no
    word at all."""
    check_each(where, types, LITERAL)
    for word in types:
        if len(word) > 32 or _UNFIT_WORD(word):
            reject_field(
                where, f"{word[:80]!r} is not a type word", "write 1-32 characters without blanks, quotes, < or >"
            )
    if types and set(types.values()) != {"string", "json"}:
        example = 'for example { text = "string", other = "json" }'
        reject_field(where, "it must have a word for string and one for json", example)


def _check_escapes(where: str, escapes: dict[str, str]) -> None:
    """Raise `BadFormat` for an escape that is not one character with an unambiguous replacement, and if the
    quotation mark has none."""
    check_each(where, escapes.values(), LITERAL)
    for char, written in escapes.items():
        if len(char) != 1 or len(written) < 2 or written[0] not in escapes:
            cure = "write one character and its replacement, which begins with a character that is escaped too"
            reject_field(where, f"{char[:80]!r} = {written[:80]!r} is not an escape", cure)
    if escapes and '"' not in escapes:
        reject_field(where, "the quotation mark has no escape", "a key ends at one: add its replacement")


def _write_param(body: Params, key: str, value: Any) -> str:
    """Return one argument in its tags: a string as it is, nested tags for a list or object if the body has `item`,
    else JSON."""
    key = escape_name(body, key)
    opener = first_alternative(body.param).replace("{type}", _type_word(body, value)).replace("{key}", key)
    close = first_alternative(body.value_close).replace("{key}", key)
    if isinstance(value, str):
        before, after = _quotes_for(body, value, close.strip())
        return opener + before + value + after + close
    if body.item and isinstance(value, (dict, list)) and value:
        entries = value.items() if isinstance(value, dict) else [(body.item, item) for item in value]
        return opener + "".join([_write_param(body, k, v) for k, v in entries]) + close
    return opener + ("" if body.item and value in ({}, []) else encode(value)) + close


def _quotes_for(body: Params, text: str, close: str) -> tuple[str, str]:
    """Return the quotes around a text: the body's if the text contains its closing tag, otherwise two empty strings."""
    return body.quote if body.quote and close and close in text else ("", "")


def _type_word(body: Params, value: Any) -> str:
    """Return the word for the `{type}` hole of this value: its JSON type if the body has that word with the right
    meaning, else the first word for texts or for JSON; "" if there is none."""
    wanted = "string" if isinstance(value, str) else "json"
    name = _JSON_TYPES.get(type(value), "string")
    if body.types.get(name) == wanted:
        return name
    return next((word for word, kind in body.types.items() if kind == wanted), "")


# -- Python calls ------------------------------------------------------------------------------------------------------


class PythonicKind(BodyKind[Pythonic]):
    first = "["
    lines = True

    def write(self, body: Pythonic, call: Call, arguments: str, index: int) -> str:
        """Return a Python call with keyword arguments; `arguments` is not used, since the notation is not JSON."""
        arguments = ", ".join([f"{key}={_write_python_value(value)}" for key, value in call.arguments.items()])
        return f"{call.name}({arguments})"

    def markers(self, body: Pythonic) -> tuple[Marker, ...]:
        """Return the texts around several calls, and `print(`, which models write around a call."""
        return (*body.wrap, "print(")

    def wrap(self, body: Pythonic) -> Wrap | None:
        """Return the texts before, between and after several calls."""
        return body.wrap

    def carries_name(self, body: Pythonic, name: str) -> bool:
        """Return whether a name can precede a parenthesis: letters, digits, `_`, `-` and `.`, no digit first."""
        return bool(_is_function_name(name))

    def check(self, body: Pythonic, where: str, format: Format) -> None:
        """Raise `BadFormat` for a text in `wrap` that is too long or has holes."""
        check_each(f"{where}.wrap", body.wrap, ANY_TEXT)


def _write_python_value(value: Any) -> str:
    """Return a JSON value as a Python literal."""
    if isinstance(value, list):
        return "[" + ", ".join([_write_python_value(item) for item in value]) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join([f"{encode(key)}: {_write_python_value(item)}" for key, item in value.items()]) + "}"
    return repr(value) if value is None or isinstance(value, bool) else encode(value)


# -- bare keys in braces -----------------------------------------------------------------------------------------------


class BracedKind(BodyKind[Braced]):
    def write(self, body: Braced, call: Call, arguments: str, index: int) -> str:
        """Return a call with bare keys and quoted texts: the opening marker, then `call.arguments` in braces.
        `arguments` is not used, since the notation is not JSON."""
        return fill_marker(body.open, call, index) + _write_braced_value(body, call.arguments)

    def markers(self, body: Braced) -> tuple[Marker, ...]:
        """Return the marker with the name and the quote of texts."""
        return (body.open, body.quote)

    def opening(self, body: Braced) -> tuple[Marker, ...]:
        """Return the marker with the name as a tuple of one."""
        return (body.open,)

    def check(self, body: Braced, where: str, format: Format) -> None:
        """Raise `BadFormat` for an opening marker without the name or a quote that is empty or has holes."""
        check_marker(f"{where}.open", body.open, OPENER)
        check_marker_text(f"{where}.quote", body.quote, LITERAL)


def _write_braced_value(body: Braced, value: Any) -> str:
    """Return a JSON value in the notation of the body: objects as bare keys in braces, each text between its quotes,
    anything else as JSON. Quotes in a text are not escaped."""
    if isinstance(value, dict):
        return "{" + ",".join([f"{key}:{_write_braced_value(body, item)}" for key, item in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ",".join([_write_braced_value(body, item) for item in value]) + "]"
    return body.quote + value + body.quote if isinstance(value, str) else encode(value)


# -- TypeScript calls --------------------------------------------------------------------------------------------------

_IS_LABEL = re.compile(r"[A-Za-z_][\w\-]{0,39}").fullmatch
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*").fullmatch


class TsCallKind(BodyKind[TsCall]):
    found_on_lines = True

    def write(self, body: TsCall, call: Call, arguments: str, index: int) -> str:
        """Return a call as TypeScript. `arguments` is not used, since the notation is not JSON."""
        return f"{call.name}({write_literal(call.arguments)})"

    def markers(self, body: TsCall) -> tuple[Marker, ...]:
        """Return the texts with a meaning in a TypeScript call: its parentheses, a heredoc, comments, and a label."""
        return ("{name}({ city: ", " })", "<<EOF\n", "\nEOF", "// ", "/*", "*/", f"{body.labels[0]}: ")

    def carries_name(self, body: TsCall, name: str) -> bool:
        """Return whether a name can precede a parenthesis: letters, digits, `_`, `-` and `.`, no digit first."""
        return bool(_is_function_name(name))

    def check(self, body: TsCall, where: str, format: Format) -> None:
        """Raise `BadFormat` for an invalid label, and for a format without markers around a call."""
        check_each(f"{where}.labels", body.labels, LITERAL)
        for label in body.labels:
            if not _IS_LABEL(label):
                cure = "write a word of letters, digits, _ and -, at most 40"
                reject_field(f"{where}.labels", f"{label[:80]!r} is not a label", cure)
        if "" in marker_alternatives(format.call[0]) or not any(marker_alternatives(format.call[1])):
            reject_field(
                where,
                "without markers around a call it cannot be distinguished from text",
                "write call with both markers",
            )


def write_literal(value: Any) -> str:
    """Return a value as a TypeScript literal. A string of several lines is a heredoc, which needs no escapes."""
    if isinstance(value, dict):
        entries = [f"{key if _IDENTIFIER(key) else encode(key)}: {write_literal(v)}" for key, v in value.items()]
        return f"{{ {', '.join(entries)} }}" if entries else "{}"
    if isinstance(value, list):
        return "[" + ", ".join([write_literal(item) for item in value]) + "]"
    if isinstance(value, str) and "\n" in value and not value.endswith("\r"):
        tag = _unused_heredoc_tag(value)
        return f"<<{tag}\n{value}\n{tag}"
    return encode(value)


def _unused_heredoc_tag(text: str) -> str:
    """Return a heredoc tag (EOF, EOF2 ...) with which no line of the text begins."""
    number = 1
    while closing(tag := f"EOF{number}" if number > 1 else "EOF").search(f"\n{text}\n"):
        number += 1
    return tag


BODIES: dict[type[Body], BodyKind[Any]] = {
    Envelope: EnvelopeKind(),
    NameThenJson: NameThenJsonKind(),
    Params: ParamsKind(),
    Pythonic: PythonicKind(),
    Braced: BracedKind(),
    TsCall: TsCallKind(),
}
