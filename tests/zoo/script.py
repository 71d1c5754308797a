"""The script of the model: it reads the file, edits it if that is the task, and reports that it is done.

scripted_output(question)      Output(calls=(ScriptedCall("read_file", {"path": "hello.txt"}),))

The tool and its arguments are chosen from the schemas in the request, so the script works with any agent. If the user
names a tool followed by arguments, `get_time {"zone": "CET"}`, these calls are made; for "call a {...}, then call b
{...}" they are made one after the other.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from zoo.question import Json, OfferedTool, Question

FINAL = "The keeper says: all done."
OLD, NEW = "zebra-4711", "okapi-4712"
_READS = "read view cat open show".split()
_EDITS = "str_replace replace edit write create_file apply".split()
_SHELLS = "exec shell bash command terminal".split()
_PATH = re.compile(
    r"^(abs(olute)?_?|target_?|rel(ative)?_?|src_?)?(file|path|filename|filepath)s?(_?(path|name))?s?$", re.I
)


class ScriptedCall(NamedTuple):
    """A call. `raw` replaces its arguments in the encoded answer."""

    name: str
    arguments: Json
    id: str = ""
    raw: Any = None

    @property
    def text(self) -> str:
        return json.dumps(self.arguments, ensure_ascii=False)

    @property
    def wire(self) -> Any:
        """Return the arguments as they are encoded."""
        return self.text if self.raw is None else self.raw


class Output(NamedTuple):
    """The output of a model in one turn."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    reasoning: str = ""
    finish: str = ""  # the finish reason in the answer, if it is not the correct one

    @property
    def call(self) -> ScriptedCall:
        return self.calls[0]


def scripted_output(question: Question) -> Output:
    """Return the correct output."""
    steps = _steps(question.user_text)
    if steps and question.tools and question.choice != "none":
        due = steps[question.rounds : question.rounds + 1]
        return Output(calls=_with_ids(due, question)) if due else Output(text=FINAL)
    if not question.tools or question.choice == "none":
        return Output(text="A title for a task" if not question.results else FINAL)
    demanded = [tool for tool in question.tools if tool.name == question.choice]
    tools = demanded or question.tools
    calls = _calls_in_text(question.last_user_text, tools)
    if calls and not question.results:
        return Output(calls=_with_ids(calls, question))
    if question.results == 0 or question.choice not in ("auto", "none"):
        return Output(calls=_with_ids([_reading_call(tools, question)], question))
    if question.results == 1 and question.edits:
        return Output(calls=_with_ids([_editing_call(tools, question)], question))
    return Output(text=FINAL)


def render_output(output: Output) -> str:
    """Return the output as a model writes it that has its tools in the prompt."""
    calls = [{"name": call.name, "arguments": call.arguments} for call in output.calls]
    return output.text + "\n".join([f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls])


def _with_ids(calls: list[ScriptedCall], question: Question) -> tuple[ScriptedCall, ...]:
    before = len(question.calls)
    return tuple([call._replace(id=f"call_zoo{before + at}a7") for at, call in enumerate(calls)])


def _steps(text: str) -> list[ScriptedCall]:
    """Return the calls that the user requests one after the other."""
    if ", then call " not in text:
        return []
    return [
        call
        for match in re.finditer(r"[Cc]all (\S+) (?=\{)", text)
        if (call := _parse_arguments(match[1], text, match.end()))
    ]


def _parse_arguments(name: str, text: str, at: int) -> ScriptedCall | None:
    try:
        return ScriptedCall(name, json.JSONDecoder().raw_decode(text, at)[0])
    except ValueError:
        return None


def _calls_in_text(text: str, tools: list[OfferedTool]) -> list[ScriptedCall]:
    """Return the calls that the user spells out."""
    found: list[tuple[int, ScriptedCall]] = []
    for tool in tools:
        for match in re.finditer(rf"(?<![\w.]){re.escape(tool.name)}(?: with)? *(?=\{{)", text):
            call = _parse_arguments(tool.name, text, match.end())
            found += [(match.start(), call)] if call else []
    return [call for _, call in sorted(found, key=lambda each: each[0])]


def _reading_call(tools: list[OfferedTool], question: Question) -> ScriptedCall:
    tool = _find_tool(tools, _READS) or _find_tool(tools, _SHELLS) or _find_by_path(tools) or tools[0]
    return ScriptedCall(tool.name, fill_arguments(tool.schema, question.file, f"cat {question.file}"))


def _editing_call(tools: list[OfferedTool], question: Question) -> ScriptedCall:
    tool = _find_tool(tools, _EDITS) or _find_tool(tools, _SHELLS) or tools[0]
    return ScriptedCall(tool.name, fill_arguments(tool.schema, question.file, f"sed -i s/{OLD}/{NEW}/ {question.file}"))


def _find_tool(tools: list[OfferedTool], words: list[str]) -> OfferedTool | None:
    """Return the first tool whose name begins with one of these words, or contains one, in this order."""
    for fits in (str.startswith, str.__contains__):
        for word in words:
            for tool in tools:
                if fits(tool.name.lower().rpartition("__")[2], word) and not _is_odd(tool):
                    return tool
    return None


def _is_odd(tool: OfferedTool) -> bool:
    return any(
        word in tool.name.lower() for word in ("notebook", "image", "todo", "resource", "output", "mcp", "_bash")
    )


def _find_by_path(tools: list[OfferedTool]) -> OfferedTool | None:
    return next((tool for tool in tools if any(map(_PATH.match, tool.schema.get("properties") or {}))), None)


# -- arguments ---------------------------------------------------------------------------------------------------------


def fill_arguments(schema: Json, file: str, command: str, *, optional: bool = False) -> Json:
    """Return arguments that match the schema; optional ones only on request."""
    return dict(_Filler(schema, file, command, optional).members(schema))


class _Filler(NamedTuple):
    root: Json
    file: str
    command: str
    optional: bool

    def members(self, schema: Json) -> Json:
        properties = schema.get("properties") or {}
        required = set(schema.get("required") or ())
        matching = {name for name in properties if _PATH.match(name) or name in ("cmd", "command", "commands")}
        simple = {name for name in properties if self.optional and _kind(properties[name]) not in ("string", "object")}
        included = required | (matching if not required & matching else set()) | simple
        return {name: self.value(name, properties[name]) for name in properties if name in included}

    def value(self, name: str, schema: Any) -> Any:
        schema = self._resolve(schema)
        if schema.get("enum"):
            return schema["enum"][0]
        if "const" in schema:
            return schema["const"]
        kind = _kind(schema)
        if kind == "array":
            minimum = max(
                int(schema.get("minItems") or 0), int(bool(_PATH.match(name) or name == "commands")), self.optional
            )
            return [self.value(name, schema.get("items") or {}) for _ in range(minimum)] or []
        if kind == "object":
            return self.members(schema)
        if kind in ("integer", "number"):
            return max(1, int(schema.get("minimum") or 0))
        return {"boolean": False, "null": None}[kind] if kind in ("boolean", "null") else self._text_for(name)

    def _text_for(self, name: str) -> str:
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

    def _resolve(self, schema: Any) -> Json:
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
                return self._resolve(kinds[0])
        return schema


def _kind(schema: Any) -> str:
    declared = schema.get("type") if isinstance(schema, dict) else None
    kinds = [each for each in declared if each != "null"] if isinstance(declared, list) else [declared]
    if kinds and kinds[0]:
        return str(kinds[0]).lower()
    inner = [_kind(each) for key in ("anyOf", "oneOf") for each in (schema or {}).get(key) or ()]
    return next((each for each in inner if each != "null"), "object" if "properties" in (schema or {}) else "string")
