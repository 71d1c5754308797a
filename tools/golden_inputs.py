"""Inputs of the golden comparison: record what the tests and the evaluations parse, and replay it.

Recording is a pytest plugin (`-p golden_inputs`), or `python -m golden_inputs MODULE [ARGUMENTS]` for a module that is
run by its name. Both wrap the public entry points (`parse`, `Parser`, `read`, `Stream`, `repair`) and append every
input to files in the folder RIGHTCALL_GOLDEN_OUT. Replaying parses one recorded input and returns the outcome as plain
JSON data.

Only public names of rightcall are used, so one script runs on any two trees.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import os
import re
import runpy
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

import msgspec

import rightcall
from rightcall import formats

Json = dict[str, Any]

OUT = "RIGHTCALL_GOLDEN_OUT"
LONGEST = 20_000  # characters of an input; limits and costs have tests of their own
MOST_OF_A_TEST = 5_000  # distinct inputs of one test function
CORPUS = re.compile("corpus|regressions")
MOST_OPEN = 10_000  # parsers that are recorded at the same time
MOST_TOOLSETS = 5_000
DEFAULTS: Json = {
    "reasoning": "auto",
    "repair": "safe",
    "rescue": "safe",
    "reasoning_calls": "safe",
    "choice": None,
    "finish": None,
    "limits": None,
    "api": "auto",
}


class Unserialisable(Exception):
    """The input contains an object that has no plain form."""


# -- plain forms -------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Return what a test passed as JSON data. Raise `Unserialisable` for an object that has no plain form."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return {"$bytes": base64.b64encode(bytes(value)).decode("ascii")}
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise Unserialisable("a key that is no text")
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if callable(dump := getattr(value, "model_dump", None)):  # an SDK's object
        return plain(dump())
    raise Unserialisable(type(value).__name__)


def from_plain(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"$bytes"}:
            return base64.b64decode(value["$bytes"])
        return {key: from_plain(item) for key, item in value.items()}
    return [from_plain(item) for item in value] if isinstance(value, list) else value


def plain_format(format: Any) -> Any:
    """Return the name of a built-in format; the fields of any other, with their classes."""
    if isinstance(format, str) and not isinstance(format, formats.Special):
        if format == "auto" or format in formats.FORMATS or format in formats.ALIASES:
            return str(format)
        format = formats.find(format)
    if formats.FORMATS.get(format.name) == format:
        return str(format.name)
    return _plain_value(format)


def _plain_value(value: Any) -> Any:
    if isinstance(value, formats.Special):
        return {"$special": str(value), "tokens": list(value.tokens)}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, tuple):
        return {"$tuple": [_plain_value(item) for item in value]}
    if isinstance(value, dict):
        return {"$dict": [[_plain_value(key), _plain_value(item)] for key, item in value.items()]}
    name = type(value).__name__
    if isinstance(value, msgspec.Struct) and getattr(formats, name, None) is type(value):
        return {"$class": name, **{field: _plain_value(getattr(value, field)) for field in value.__struct_fields__}}
    raise Unserialisable(name)


def format_from(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "$special" in value:
        return formats.Special(value["$special"], tuple(value["tokens"]))
    if "$tuple" in value:
        return tuple([format_from(item) for item in value["$tuple"]])
    if "$dict" in value:
        return {format_from(key): format_from(item) for key, item in value["$dict"]}
    fields = {field: format_from(item) for field, item in value.items() if field != "$class"}
    return getattr(formats, value["$class"])(**fields)


def plain_tools(tools: Any) -> Json:
    """Return definitions as they were passed if they are JSON data; otherwise the tools of a `Toolset`."""
    if not isinstance(tools, rightcall.Toolset):
        try:
            return {"data": plain(tools)}
        except Unserialisable:
            tools = rightcall.Toolset.of(tools)
    found = [_plain_tool(tool) for tool in tools]
    scoped = tools.authorise("\0 no tool has this name") == "not_authorised"
    return {"tools": found, "scoped": scoped}


def _plain_tool(tool: rightcall.Tool) -> Json:
    fields = ("name", "description", "parameters", "output_schema", "aliases", "read_only", "compact")
    return {field: plain(getattr(tool, field)) for field in fields}


def tools_from(value: Json) -> Any:
    if "data" in value:
        return rightcall.Toolset.of(from_plain(value["data"]))
    toolset = rightcall.Toolset([rightcall.Tool(**tool) for tool in value["tools"]])
    return toolset.scoped([tool["name"] for tool in value["tools"]]) if value["scoped"] else toolset


def encode(value: Any) -> str:
    """Return one line of JSON. Lone surrogates are escaped, so that any text can be stored."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def input_line(row: Json) -> str:
    """Return a recorded input as one line of JSON that begins with its id."""
    return f'{{"id":"{row["id"]}",{encode({name: value for name, value in row.items() if name != "id"})[1:]}'


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


# -- recording ---------------------------------------------------------------------------------------------------------


class OpenParser:
    """The input of one `Parser` or `Stream` so far."""

    def __init__(self, kind: str, options: Json) -> None:
        self.kind, self.options, self.pieces = kind, options, list[Any]()


class Recorder:
    """Appends distinct inputs to one file for each process. `skipped` counts unrecordable inputs, by reason."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.pid = 0
        self.forget()

    def forget(self) -> None:
        self.seen: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        self.toolsets: dict[int, tuple[Any, str]] = {}
        self.open: dict[int, OpenParser] = {}

    def write(self, line: str) -> None:
        with open(os.path.join(self.folder, f"{os.getpid()}.jsonl"), "a", encoding="ascii") as file:
            file.write(line + "\n")

    def skip(self, reason: str) -> None:
        self.skipped[reason] += 1
        self.write(encode({"skipped": reason}))

    def record(self, kind: str, recorded_input: Json, options: Mapping[str, Any]) -> None:
        """Write one input unless it is known, too long, or over the limit for one test."""
        if os.getpid() != self.pid:  # a forked process has its own file
            self.pid = os.getpid()
            self.forget()
        try:
            row: Json = {"kind": kind, **recorded_input, "options": {}}
            for name, value in options.items():
                if name == "tools":
                    row["tools"] = self.tools(value)
                elif name == "format":
                    row["format"] = plain_format(value)
                elif name == "limits" and value is not None:
                    row["options"]["limits"] = {field: getattr(value, field) for field in value.__struct_fields__}
                elif name in DEFAULTS and value != DEFAULTS[name]:
                    row["options"][name] = plain(value)
                elif name == "policy":
                    row["options"]["policy"] = plain(value)
            line = encode(row)
        except Unserialisable as error:
            return self.skip(f"{kind}: {error}")
        except Exception as error:  # noqa: BLE001 - the recorded call raises the same exception, which its test expects
            return self.skip(f"{kind}: {type(error).__name__}")
        if len(line) > LONGEST:
            return self.skip(f"{kind}: too long")
        digest = digest_of(line)
        if digest in self.seen:
            return None
        test = os.environ.get("PYTEST_CURRENT_TEST", "").split(" (")[0].split("[")[0] or self.source
        self.counts[test] += 1
        if self.counts[test] > MOST_OF_A_TEST and "::" in test:
            return self.skip(f"{kind}: more than {MOST_OF_A_TEST} of one test")
        self.seen.add(digest)
        self.write(input_line({"id": digest, "source": test.split("::")[0], **row}))
        return None

    source = "?"

    def tools(self, tools: Any) -> str | None:
        if tools is None:
            return None
        known = self.toolsets.get(id(tools))
        if known is not None:
            return known[1]
        line = encode(plain_tools(tools))
        if len(line) > 10 * LONGEST:
            raise Unserialisable("tools too long")
        digest = digest_of(line)
        if digest not in self.seen:
            self.seen.add(digest)
            self.write(encode({"toolset": digest, "value": json.loads(line)}))
        if isinstance(tools, rightcall.Toolset):  # immutable, and stored here, so that its id is not reused
            if len(self.toolsets) >= MOST_TOOLSETS:
                self.toolsets.clear()
            self.toolsets[id(tools)] = (tools, digest)
        return digest

    # -- parsers and streams, which get their text in pieces

    def begin(self, parser: Any, kind: str, options: Json) -> None:
        if (old := self.open.pop(id(parser), None)) is not None:
            self.end(old, None)
        if len(self.open) < MOST_OPEN:
            if not isinstance(options.get("tools"), (rightcall.Toolset, list, tuple, dict, type(None))):
                options = {**options, "tools": rightcall.Toolset.of(options["tools"])}
            self.open[id(parser)] = OpenParser(kind, options)

    def feed(self, parser: Any, piece: Any) -> None:
        if (found := self.open.get(id(parser))) is not None:
            found.pieces.append(piece)

    def close(self, parser: Any, finish: str | None) -> None:
        if (found := self.open.pop(id(parser), None)) is not None:
            self.end(found, finish)

    def end(self, found: OpenParser, finish: str | None) -> None:
        options = {**found.options, "finish": finish} if finish is not None else found.options
        if found.kind == "stream":
            try:
                self.record("stream", {"chunks": plain(found.pieces)}, options)
            except Unserialisable as error:
                self.skip(f"stream: {error}")
        elif all(special is None for _, special in found.pieces):
            self.record("parse", {"text": "".join([text for text, _ in found.pieces])}, options)
        else:
            self.record("parse", {"pairs": [[text, special] for text, special in found.pieces]}, options)


def install(recorder: Recorder) -> None:
    """Wrap the public entry points, also where a module has already imported them by name."""
    wrappers: dict[int, tuple[Any, Callable[..., Any]]] = {}

    def wrap(name: str, note: Callable[..., None]) -> None:
        original = getattr(rightcall, name)

        @functools.wraps(original)
        def wrapper(*args: Any, **options: Any) -> Any:
            note(*args, **options)
            return original(*args, **options)

        wrappers[id(original)] = (original, wrapper)

    def note_parse(*args: Any, **options: Any) -> None:
        text = args[0] if args else options.pop("text", None)
        if isinstance(text, str):
            recorder.record("parse", {"text": text}, {"format": "auto", **options})
        elif isinstance(text, list):
            recorder.record("parse", {"pairs": text}, {"format": "auto", **options})

    def note_read(response: Any = None, *_: Any, **options: Any) -> None:
        try:
            recorder.record("read", {"response": plain(response)}, {"format": "auto", **options})
        except Unserialisable as error:
            recorder.skip(f"read: {error}")

    def note_repair(call: Any = None, tools: Any = None, *, policy: Any = "safe") -> None:
        if isinstance(call, rightcall.Call):
            try:
                recorded_input = {"name": call.name, "json": call.json, "arguments": plain(call.arguments)}
            except Unserialisable as error:
                return recorder.skip(f"repair: {error}")
            if call.complete and not call.repairs and not call.problems:
                recorder.record("repair", recorded_input, {"tools": tools, "policy": policy})
        return None

    wrap("parse", note_parse)
    wrap("read", note_read)
    wrap("read_all", note_read)
    wrap("repair", note_repair)
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] != __name__ and module is not None:
            for attribute, value in list(vars(module).items()):
                if (found := wrappers.get(id(value))) is not None and found[0] is value:
                    setattr(module, attribute, found[1])
    _wrap_reader(recorder, rightcall.Parser, "parse", "format")
    _wrap_reader(recorder, rightcall.Stream, "stream", "api")


def _wrap_reader(recorder: Recorder, reader: Any, kind: str, first: str) -> None:
    """Record what is fed to a `Parser` or a `Stream`. `first` is the name of its positional option."""
    make, feed, close = reader.__init__, reader.feed, reader.close

    @functools.wraps(make)
    def new_make(self: Any, *args: Any, **options: Any) -> None:
        make(self, *args, **options)
        recorder.begin(self, kind, {"format": "auto", **options, **({first: args[0]} if args else {})})

    @functools.wraps(feed)
    def new_feed(self: Any, piece: Any, *args: Any, **options: Any) -> Any:
        if kind == "stream":
            recorder.feed(self, piece)
        elif isinstance(piece, str):
            recorder.feed(self, (piece, args[0] if args else options.get("special")))
        return feed(self, piece, *args, **options)

    @functools.wraps(close)
    def new_close(self: Any, *args: Any, **options: Any) -> Any:
        recorder.close(self, args[0] if args else options.get("finish"))
        return close(self, *args, **options)

    reader.__init__, reader.feed, reader.close = new_make, new_feed, new_close


# -- replaying ---------------------------------------------------------------------------------------------------------


class Replayer:
    """Replays inputs. `toolsets` has the plain form of every toolset by its digest."""

    def __init__(self, toolsets: Mapping[str, Json]) -> None:
        self.plain = toolsets
        self.made: dict[str, Any] = {}

    def tools(self, row: Json) -> Any:
        digest = row.get("tools")
        if digest is None:
            return None
        if digest not in self.made:
            if len(self.made) >= MOST_TOOLSETS:
                self.made.clear()
            self.made[digest] = tools_from(self.plain[digest])
        return self.made[digest]

    def outcome(self, row: Json) -> Json:
        """Return the outcome of an input. An exception is an outcome, too."""
        try:
            return {"parse": self.parse, "read": self.read, "stream": self.stream, "repair": self.repair}[row["kind"]](
                row
            )
        except Exception as error:  # noqa: BLE001 - every exception is compared
            return {"raised": type(error).__name__}

    def options(self, row: Json) -> Json:
        options: Json = {"format": format_from(row.get("format", "auto")), "ids": rightcall.Ids.numbered(MINTED)}
        options |= {name: from_plain(value) for name, value in row["options"].items()}
        if (limits := options.get("limits")) is not None:
            options["limits"] = rightcall.Limits(**limits)
        return {"tools": self.tools(row), **options}

    def parse(self, row: Json) -> Json:
        pairs = [(text, special) for text, special in row["pairs"]] if "pairs" in row else None
        options = {**self.options(row), "spans": True}
        recorded_input: Any = row["text"] if pairs is None else pairs
        found = describe(rightcall.parse(recorded_input, **options))
        cuttings = {"pairs": pairs} if pairs is not None else chunkings(row)
        finish = options.pop("finish", None)
        for cutting, chunks in cuttings.items():
            options["ids"] = rightcall.Ids.numbered(MINTED)
            parser = rightcall.Parser(**options)
            events: list[Any] = []
            for text, special in chunks:
                events += parser.feed(text, special)
            events += parser.close(finish)
            streamed = describe(parser.reply)
            if streamed != {name: value for name, value in found.items() if name not in ("streamed", "events")}:
                found.setdefault("streamed", {})[cutting] = streamed
            if "events" not in found:
                found["events"] = digest_of(encode(join_events(events)))[:8]
        return found

    def read(self, row: Json) -> Json:
        return describe(rightcall.read(from_plain(row["response"]), **self.options(row)))

    def stream(self, row: Json) -> Json:
        options = self.options(row)
        options.pop("finish", None)
        chunks = from_plain(row["chunks"])
        found = _streamed(chunks, options)
        if chunks and all(isinstance(chunk, str) for chunk in chunks):
            options["ids"] = rightcall.Ids.numbered(MINTED)
            cut = _streamed(pieces("".join(chunks), Random(row["id"]), 40), options)
            if cut != found:
                found["streamed"] = {"pieces": cut}
        return found

    def repair(self, row: Json) -> Json:
        policy = row["options"].get("policy", "safe")
        call = rightcall.Call(row["name"], from_plain(row["arguments"]), row["json"])
        tools = self.tools(row)
        made = rightcall.repair(call, tools, policy=policy)
        wrong = rightcall.check(made, tools) if tools is not None else ()
        ok = made.ok and not any(problem.blocking for problem in wrong)
        problems = [[each.code, each.path, 0, each.blocking] for each in (*made.problems, *wrong)]
        return {"attempts": [_attempt(made, ok)], **({"problems": problems} if problems else {})}


MINTED = "minted"


def _streamed(chunks: list[Any], options: Json) -> Json:
    stream = rightcall.Stream(**options)
    for chunk in chunks:
        stream.feed(chunk)
    stream.close()
    return describe(stream.reply)


Piece = tuple[str, bool | None]


def chunkings(row: Json) -> dict[str, list[Piece]]:
    """Return cuttings of a text: all for a text of the tests, one for a generated text."""
    text: str = row["text"]
    dice = Random(row["id"])
    found: dict[str, list[Piece]] = {}
    if len(text) <= 4_000:
        found["fours"] = [(text[at : at + 4], None) for at in range(0, len(text), 4)]
    if len(text) <= 400:
        found["characters"] = [(char, None) for char in text]
    found["pieces"] = [(piece, None) for piece in pieces(text, dice, 12 + len(text) // 200)]
    if not row["source"].startswith("tests"):
        cutting = dice.choice(sorted(found))
        found = {cutting: found[cutting]}
    return found


def pieces(text: str, dice: Random, longest: int) -> list[str]:
    """Cut a text at random."""
    found, at = list[str](), 0
    while at < len(text):
        step = dice.randint(1, longest)
        found.append(text[at : at + step])
        at += step
    return found


def describe(reply: rightcall.Reply) -> Json:
    """Return a reply as plain data, without messages, which may be reworded, and without empty fields."""
    found: Json = {
        "attempts": [_attempt(call, call.ok) for call in reply.attempts],
        "problems": [[each.code, each.path, each.call, each.blocking] for each in reply.problems],
        "content": reply.content,
        "reasoning": reply.reasoning,
        "parts": "".join([type(part).__name__[0] for part in reply.parts]),
        "tags": [part.tag for part in reply.parts if isinstance(part, rightcall.Text) and part.tag],
        "format": reply.format,
        "done": reply.done,
        "spans": [[span.start, span.end, span.kind[0]] for span in reply.spans or ()],
        "finish": reply.finish,
        "api": reply.api,
        "usage": reply.usage,
        "extras": [[_id(name), encode(value)] for name, value in reply.extras.items()],
    }
    return {name: value for name, value in found.items() if value or (name == "done" and value is not None)}


def _attempt(call: rightcall.Call, ok: bool) -> Json:
    found: Json = {
        "name": call.name,
        "json": call.json,
        "ok": ok,
        "id": _id(call.id),
        "complete": call.complete,
        "repairs": [[each.rule, each.kind, each.path] for each in call.repairs],
    }
    try:
        same = encode(json.loads(call.json or "{}")) == encode(call.arguments)
    except (ValueError, TypeError):
        same = False
    if not same:
        found["arguments"] = json.loads(json.dumps(call.arguments, default=repr))
    return {name: value for name, value in found.items() if value or name in ("ok", "arguments")}


def _id(id: str) -> str:
    """Return an id that the text has; empty for a generated id."""
    return "" if id.startswith(MINTED) else id


def join_events(events: list[Any]) -> list[Any]:
    """Return the events of a stream, with adjacent events of one kind joined, without what the reply contains."""
    found: list[Any] = []
    for event in events:
        item: list[Any]
        match event:
            case rightcall.Text(text=text, tag=tag):
                item = ["text", tag, text]
            case rightcall.Reasoning(text=text):
                item = ["reasoning", "", text]
            case rightcall.Arguments(index=index, json=text):
                item = ["arguments", index, text]
            case rightcall.CallStart(index=index, name=name):
                item = ["start", index, name]
            case rightcall.CallEnd(index=index):
                item = ["end", index]
            case rightcall.Recast(chars=chars, kind=kind):
                item = ["recast", kind, chars]
            case rightcall.Problem(code=code):
                item = ["problem", code]
            case _:
                item = [type(event).__name__]
        if found and len(item) == 3 and item[0] in ("text", "reasoning", "arguments") and found[-1][:2] == item[:2]:
            found[-1][2] += item[2]
        else:
            found.append(item)
    return found


class Inputs(NamedTuple):
    """Recorded inputs in a fixed order, and the toolsets that they name."""

    rows: list[str]
    toolsets: dict[str, Json]
    skipped: Counter[str]


def merge(lines: Iterator[str]) -> Inputs:
    """Merge the files of all processes: each input once, from the source with the lowest rank."""
    rows: dict[str, tuple[str, str]] = {}
    toolsets: dict[str, Json] = {}
    skipped: Counter[str] = Counter()
    for line in lines:
        row = json.loads(line)
        if "skipped" in row:
            skipped[row["skipped"]] += 1
        elif "toolset" in row:
            toolsets[row["toolset"]] = row["value"]
        else:
            known = rows.get(row["id"])
            if known is None or _rank(row["source"]) < _rank(known[0]):
                rows[row["id"]] = (row["source"], input_line(row))
    return Inputs([rows[id][1] for id in sorted(rows)], toolsets, skipped)


def _rank(source: str) -> tuple[bool, bool, str]:
    """Rank sources: texts of the tests are cut in more ways, and those of the corpus are in every sample."""
    return not source.startswith("tests"), not CORPUS.search(source), source


# -- entry points of the recorder --------------------------------------------------------------------------------------


def pytest_configure(config: object) -> None:
    install(Recorder(os.environ[OUT]))


if __name__ == "__main__":
    recorder = Recorder(os.environ[OUT])
    recorder.source = sys.argv[1]
    install(recorder)
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
