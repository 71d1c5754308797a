"""The definition of a wire format: markers, and a body that describes how arguments are written.

A *marker* is a template: literal text with the holes `{name} {key} {type} {id} {index} {number}` (index counts calls
from 0, number from 1; `{cite}` matches any text, in markers that are not rendered). A tuple of templates means
alternatives, of which the first is rendered. White space at the edge of a marker is written when rendering and optional
when parsing. A marker that is one token of the model's vocabulary is
written `Special("<|call|>")`, because grammars and servers must treat it as such.

    Format("hermes", body=Envelope(), call=("<tool_call>\\n", "\\n</tool_call>"), between="\\n")
"""

from __future__ import annotations

from typing import Any, Literal, SupportsIndex

import msgspec

Marker = str | tuple[str, ...]
Pair = tuple[Marker, Marker]
# The holes of markers, with the pattern of the text that each stands for.
HOLES = {
    "name": r"[\w$][^<>\"'`{}()\[\]|=/\s,\\]{0,255}",
    "id": r'[^<>"{}()\[\]|=/\s]{1,256}',
    "key": r'[^<>"\r\n/][^<>"\r\n]{0,255}',
    "type": r'[^<>"\s]{1,32}',
    "index": r"[0-9]{1,9}",
    "number": r"[0-9]{1,9}",
    "cite": r"[^<>\r\n]{0,128}",
}


class Special(str):
    """Marker text that is a special token of the model's vocabulary. It stays special when joined to plain text with
    `+`.

    - `text`: the marker.
    - `tokens`: the parts of it that are single tokens; None: the whole text is one.
    """

    tokens: tuple[str, ...]

    def __new__(cls, text: str, tokens: tuple[str, ...] | None = None) -> Special:
        """Return the text with its special tokens: `tokens`, or the whole text as one token."""
        self = super().__new__(cls, text)
        self.tokens = (text,) if tokens is None else tokens
        return self

    def __add__(self, other: str) -> Special:
        """Return the joined text, which has the special tokens of both."""
        return Special(str(self) + str(other), self.tokens + getattr(other, "tokens", ()))

    def replace(self, old: str, new: str, count: SupportsIndex = -1) -> Special:
        """Return the text with `old` replaced by `new`, at most `count` times, as `str` does, and with the same special
        tokens."""
        return Special(str.replace(self, old, new, count), self.tokens)

    def strip(self, chars: str | None = None) -> Special:
        """Return the text without these `chars` (blanks by default) at both ends, as `str` does, and with the same
        special tokens."""
        return Special(str.strip(self, chars), self.tokens)

    def __radd__(self, other: str) -> Special:
        """Return `other` and this text joined, with the special tokens of both."""
        return Special(str(other) + str(self), getattr(other, "tokens", ()) + self.tokens)


class Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag=str.lower):
    """How calls and their arguments are written: the data of one body kind, which are listed in `body_kinds`."""


class Envelope(Body, frozen=True):
    """A JSON object with name and arguments: `{"name": "f", "arguments": {}}`. Of several keys the first is
    written, all are parsed.

    - `names`: keys of the name. With none the key is the name: `{"f": {}}`.
    - `args`: keys of the arguments.
    - `ids`: keys of the id.
    - `wrap`: the text before, between and after several calls in one block; None: one call in each.
    - `write_id`: whether the id is written, and as which key.
    - `outer`: keys that hold the call or a list of calls.
    - `content`: a key that holds text for the user.
    """

    names: tuple[str, ...] = ("name", "tool_name", "tool")
    args: tuple[str, ...] = ("arguments", "parameters", "args")
    ids: tuple[str, ...] = ("id", "tool_call_id", "call_id")
    wrap: tuple[str, str, str] | None = None
    write_id: Literal["", "first", "last"] = ""
    outer: tuple[str, ...] = ()
    content: str = ""


class NameThenJson(Body, frozen=True):
    """A name, then a JSON object: `f[ARGS]{"x": 1}`.

    - `open`: the marker with the name, before the object. Empty: the name came from a channel header or the request.
    - `close`: the marker after the object.
    - `id`: the template of a call's id, for a format that writes the id in pieces.
    """

    open: Marker = ""
    close: Marker = ""
    id: str = ""


class Params(Body, frozen=True):
    """One tagged block per argument: `<function=f><parameter=k>v</parameter></function>`.

    - `open`: the marker with the name.
    - `param`: the marker before a value, with its key.
    - `value_close`: the marker after a value.
    - `close`: the marker after the last value.
    - `types`: the words for the `{type}` hole, each meaning "string" or "json"; the first of each is written.
    - `item`: the tag of a list's element, where values are nested tags.
    - `quote`: a pair that may surround a value.
    - `json`: a pair around one JSON object that holds all arguments; it is parsed, but never written.
    - `empty`: a whole call without arguments in one tag.
    - `escapes`: how characters of a name or a key are written in their holes.
    """

    open: Marker
    param: Marker
    value_close: Marker
    close: Marker = ""
    types: dict[str, Literal["string", "json"]] = {}
    item: str = ""
    quote: tuple[str, str] | None = None
    json: tuple[str, str] | None = None
    empty: Marker = ""
    escapes: dict[str, str] = {}


class Pythonic(Body, frozen=True):
    """Python calls with keyword arguments: `[f(k="v"), g(n=1)]`. `wrap` is the text before, between and after
    several calls."""

    wrap: tuple[str, str, str] = ("[", ", ", "]")


class Braced(Body, frozen=True):
    """Bare keys in braces: `call:f{k:<|"|>v<|"|>,n:1}`.

    - `open`: the marker with the name.
    - `quote`: the marker on both sides of a text.
    - `quoted`: "string": a quoted value is a text; "raw": its type is given by the schema alone.
    """

    open: Marker
    quote: str
    quoted: Literal["string", "raw"] = "string"


class TsCall(Body, frozen=True):
    """A call with an object literal, as TypeScript writes it: `f({ k: "v", n: 1 })`; long strings are heredocs.
    `labels` are words that, with a colon, may precede the name and are ignored; a call after any other label is
    rejected.
    """

    labels: tuple[str, ...] = (
        *("tool_code", "tool_call", "tool_output", "call", "tool", "use"),
        *("python", "javascript", "typescript", "shell", "bash"),
    )


class Channels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Messages with a header that gives their recipient and channel:
    `<|channel|>commentary to=f<|message|>{...}<|call|>`. A header is `start`, then recipient and channel in either
    order, then `message`.

    - `start`: begins a header; the reply's first has none. Of several the first begins the model's own messages; a
      message after another one is attributed to someone else, and is text.
    - `message`: ends a header.
    - `ends`: what ends a message.
    - `kinds`: the content of the channels and recipients that are not tools.
    - `messages`: how a message with reasoning, with content and with a call is written: its header without `start`, and
      its end.
    - `to`: introduces the recipient; empty: the header is the recipient.
    - `channel`: introduces the channel.
    - `prefix`: precedes a tool's name.
    """

    start: Marker
    message: str
    ends: tuple[str, ...]
    kinds: dict[str, Literal["reasoning", "content"]]
    messages: dict[Literal["reasoning", "content", "call"], tuple[str, str]]
    to: str = ""
    channel: str = ""
    prefix: str = ""


class Protocol(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A reply is blocks in tags and nothing else: calls, the format's `content`, and `done`, the pair around the
    text that reports the end of the task.

    Text keeps the name of its block as its tag. Outside all blocks a call is accepted only at the beginning of a line,
    complete and of a declared tool, and gives a note.
    """

    done: tuple[str, str]


class Format(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One wire format, for parsing, writing, grammars and prompts. A marker is text with the holes `{name} {key} {type}
    {id} {index} {number}`; of a tuple of markers all are parsed and the first is written. White space at a marker's
    edge is optional when parsing. A pair is an opening and a closing marker.

    - `name`: the name by which it is found.
    - `body`: how a call is written between its markers; of several all are parsed.
    - `section`: a pair around all calls.
    - `call`: a pair around one call, or one block of several.
    - `between`: the text between two calls.
    - `reasoning`: a pair around reasoning.
    - `content`: pairs around text for the user, for formats that mark it.
    - `ends`: end-of-turn tokens.
    - `citations`: a pair around citation marks inside text, which do not split it.
    - `channels`: for formats whose messages have headers.
    - `protocol`: for formats whose replies consist only of blocks.
    - `tools`: the listing of tools in a prompt for this family of models.
    - `aliases`: other names it is found by.
    - `models`: which models write it, for the page of formats.
    """

    name: str
    body: Body | tuple[Body, ...]
    section: Pair | None = None
    call: Pair = ("", "")
    between: str = ""
    reasoning: Pair | None = None
    content: tuple[Pair, ...] = ()
    ends: tuple[str, ...] = ()
    citations: Pair | None = None
    channels: Channels | None = None
    protocol: Protocol | None = None
    tools: str = "json"
    aliases: tuple[str, ...] = ()
    models: str = ""

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The bodies as a tuple: the first is used for writing, all are parsed."""
        return self.body if isinstance(self.body, tuple) else (self.body,)

    @staticmethod
    def from_toml(text: str) -> Format:
        """Return the format defined by TOML in `text`. It is data: nothing in it is executed. Raises `BadFormat`."""
        from rightcall.formats.toml import format_from_toml

        return format_from_toml(text)


def replace(format: Format, **changes: Any) -> Format:
    """Return a copy of the `format` with the fields named in `changes` replaced. Aliases and models are not copied."""
    return msgspec.structs.replace(format, **{"aliases": (), "models": "", **changes})


def add_spellings(format: Format, text: str, *spellings: str) -> Format:
    """Return a copy of a format that also parses the tags of its section and of its calls with other spellings of
    `text`, which the tags contain.

    All tags of a call have the same spelling, so each spelling is a body of its own. Tags are `Special` if their
    spelling is one.
    """
    tags = ("open", "param", "value_close", "close", "empty")
    bodies = [
        msgspec.structs.replace(body, **{tag: _spell(getattr(body, tag), text, spelling) for tag in tags})
        for spelling in spellings
        for body in format.bodies
    ]
    section = [(*marker_alternatives(side), *_spell(side, text, *spellings)) for side in format.section or ()]
    return msgspec.structs.replace(format, body=(*format.bodies, *bodies), section=tuple(section) or None)


def _spell(marker: Marker, text: str, *spellings: str) -> tuple[str, ...]:
    """Return the alternatives of a marker once for each spelling, with the spelling in place of `text`; the original
    ones are not included."""
    spelled = [
        (str(each).replace(text, spelling), spelling) for spelling in spellings for each in marker_alternatives(marker)
    ]
    return tuple([Special(tag, kind.tokens) if isinstance(kind, Special) else tag for tag, kind in spelled])


def marker_alternatives(marker: Marker) -> tuple[str, ...]:
    """Return the alternatives of a marker as a tuple; a single marker is its only one."""
    return (marker,) if isinstance(marker, str) else marker


def guess_closing_markers(format: Format) -> tuple[str, ...]:
    """Return the closing markers that models invent by analogy, such as `[/CALLS]` for the opening marker `[CALLS]`,
    for a format whose calls have none; () for a format that has one."""
    opens = [text.strip() for text in marker_alternatives(format.call[0])] if not format.call[1] else []
    tags = [text for text in opens if text[:1] in ("[", "<") and text[1:-1].isidentifier()]
    return tuple([f"{tag[0]}/{tag[1:]}" for tag in tags])


def escape_name(body: Params, text: str) -> str:
    """Return a name or key with its characters escaped as the body writes them in a hole."""
    return "".join([body.escapes.get(char, char) for char in text]) if body.escapes else text
