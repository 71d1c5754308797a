"""What a model that does its task says: it reads the file, edits it where that is the task, and says that it is done.

reply_to(question)      Said(calls=(Made("read_file", {"path": "hello.txt"}),))

Which tool is called, and with what, is found in the schemas that the client sent, so that any agent can be answered.
A user who names a tool and the arguments behind it, `get_time {"zone": "CET"}`, gets just those calls; one who says
"call a {...}, then call b {...}" gets them one after the other.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from zoo.question import Json, Offered, Question

FINAL = "The keeper says: all done."
OLD, NEW = "zebra-4711", "okapi-4712"
_READS = "read view cat open show".split()
_EDITS = "str_replace replace edit write create_file apply".split()
_SHELLS = "exec shell bash command terminal".split()
_PATH = re.compile(
    r"^(abs(olute)?_?|target_?|rel(ative)?_?|src_?)?(file|path|filename|filepath)s?(_?(path|name))?s?$", re.I
)


class Made(NamedTuple):
    """A call as it is meant, and with `raw`, what stands on the wire in place of its arguments."""

    name: str
    arguments: Json
    id: str = ""
    raw: Any = None

    @property
    def text(self) -> str:
        return json.dumps(self.arguments, ensure_ascii=False)

    @property
    def wire(self) -> Any:
        """The arguments as they are written."""
        return self.text if self.raw is None else self.raw


class Said(NamedTuple):
    """What a model says in one turn."""

    text: str = ""
    calls: tuple[Made, ...] = ()
    reasoning: str = ""
    finish: str = ""  # the dialect's own word where it is not the right one

    @property
    def call(self) -> Made:
        return self.calls[0]


def reply_to(question: Question) -> Said:
    """The right answer."""
    steps = _steps(question.told)
    if steps and question.tools and question.choice != "none":
        due = steps[question.rounds : question.rounds + 1]
        return Said(calls=_numbered(due, question)) if due else Said(text=FINAL)
    if not question.tools or question.choice == "none":
        return Said(text="A title for a task" if not question.results else FINAL)
    demanded = [tool for tool in question.tools if tool.name == question.choice]
    told = demanded or question.tools
    named = _named(question.asks, told)
    if named and not question.results:
        return Said(calls=_numbered(named, question))
    if question.results == 0 or question.choice not in ("auto", "none"):
        return Said(calls=_numbered([_read(told, question)], question))
    if question.results == 1 and question.edits:
        return Said(calls=_numbered([_edit(told, question)], question))
    return Said(text=FINAL)


def written_out(said: Said) -> str:
    """What was said, as a model writes it that has its tools in the prompt."""
    calls = [{"name": call.name, "arguments": call.arguments} for call in said.calls]
    return said.text + "\n".join([f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls])


def _numbered(calls: list[Made], question: Question) -> tuple[Made, ...]:
    before = len(question.calls)
    return tuple([call._replace(id=f"call_zoo{before + at}a7") for at, call in enumerate(calls)])


def _steps(told: str) -> list[Made]:
    """The calls that a user wants one after the other."""
    if ", then call " not in told:
        return []
    return [
        made for match in re.finditer(r"[Cc]all (\S+) (?=\{)", told) if (made := _spelled(match[1], told, match.end()))
    ]


def _spelled(name: str, text: str, at: int) -> Made | None:
    try:
        return Made(name, json.JSONDecoder().raw_decode(text, at)[0])
    except ValueError:
        return None


def _named(asks: str, tools: list[Offered]) -> list[Made]:
    """The calls that a user spells out."""
    found: list[tuple[int, Made]] = []
    for tool in tools:
        for match in re.finditer(rf"(?<![\w.]){re.escape(tool.name)}(?: with)? *(?=\{{)", asks):
            made = _spelled(tool.name, asks, match.end())
            found += [(match.start(), made)] if made else []
    return [made for _, made in sorted(found, key=lambda each: each[0])]


def _read(tools: list[Offered], question: Question) -> Made:
    tool = _picked(tools, _READS) or _picked(tools, _SHELLS) or _by_path(tools) or tools[0]
    return Made(tool.name, filled(tool.schema, question.file, f"cat {question.file}"))


def _edit(tools: list[Offered], question: Question) -> Made:
    tool = _picked(tools, _EDITS) or _picked(tools, _SHELLS) or tools[0]
    return Made(tool.name, filled(tool.schema, question.file, f"sed -i s/{OLD}/{NEW}/ {question.file}"))


def _picked(tools: list[Offered], words: list[str]) -> Offered | None:
    """The tool whose name begins with one of these words, or holds it, in this order."""
    for fits in (str.startswith, str.__contains__):
        for word in words:
            for tool in tools:
                if fits(tool.name.lower().rpartition("__")[2], word) and not _is_odd(tool):
                    return tool
    return None


def _is_odd(tool: Offered) -> bool:
    return any(
        word in tool.name.lower() for word in ("notebook", "image", "todo", "resource", "output", "mcp", "_bash")
    )


def _by_path(tools: list[Offered]) -> Offered | None:
    return next((tool for tool in tools if any(map(_PATH.match, tool.schema.get("properties") or {}))), None)


# -- arguments ---------------------------------------------------------------------------------------------------------


def filled(schema: Json, file: str, command: str, *, optional: bool = False) -> Json:
    """Arguments that this schema takes; those that need not be there only where they are asked for."""
    return dict(_Filler(schema, file, command, optional).members(schema))


class _Filler(NamedTuple):
    root: Json
    file: str
    command: str
    optional: bool

    def members(self, schema: Json) -> Json:
        properties = schema.get("properties") or {}
        needed = set(schema.get("required") or ())
        known = {name for name in properties if _PATH.match(name) or name in ("cmd", "command", "commands")}
        simple = {name for name in properties if self.optional and _kind(properties[name]) not in ("string", "object")}
        wanted = needed | (known if not needed & known else set()) | simple
        return {name: self.value(name, properties[name]) for name in properties if name in wanted}

    def value(self, name: str, schema: Any) -> Any:
        schema = self._resolved(schema)
        if schema.get("enum"):
            return schema["enum"][0]
        if "const" in schema:
            return schema["const"]
        kind = _kind(schema)
        if kind == "array":
            least = max(
                int(schema.get("minItems") or 0), int(bool(_PATH.match(name) or name == "commands")), self.optional
            )
            return [self.value(name, schema.get("items") or {}) for _ in range(least)] or []
        if kind == "object":
            return self.members(schema)
        if kind in ("integer", "number"):
            return max(1, int(schema.get("minimum") or 0))
        return {"boolean": False, "null": None}[kind] if kind in ("boolean", "null") else self._words(name)

    def _words(self, name: str) -> str:
        low = name.lower()
        if _PATH.match(name):
            return self.file
        if low in ("cmd", "command", "commands"):
            return self.command
        if low.startswith("old"):
            return OLD
        return (
            NEW if low.startswith("new") or low in ("content", "contents", "text", "file_text", "code") else "the file"
        )

    def _resolved(self, schema: Any) -> Json:
        for _ in range(8):
            ref = str(schema.get("$ref", "")) if isinstance(schema, dict) else ""
            if not ref.startswith("#/"):
                break
            schema = self.root
            for step in ref[2:].split("/"):
                schema = schema.get(step) or {}
        if not isinstance(schema, dict):
            return {}
        for key in ("anyOf", "oneOf", "allOf"):
            kinds = [each for each in schema.get(key) or () if isinstance(each, dict) and each.get("type") != "null"]
            if kinds and "type" not in schema:
                return self._resolved(kinds[0])
        return schema


def _kind(schema: Any) -> str:
    said = schema.get("type") if isinstance(schema, dict) else None
    kinds = [each for each in said if each != "null"] if isinstance(said, list) else [said]
    if kinds and kinds[0]:
        return str(kinds[0]).lower()
    inner = [_kind(each) for key in ("anyOf", "oneOf") for each in (schema or {}).get(key) or ()]
    return next((each for each in inner if each != "null"), "object" if "properties" in (schema or {}) else "string")
