"""A request as a server of any dialect hears it: the tools that are offered, the results so far, what is asked last.

question = Question("chat", body, stream=True)
question.tools[0].name, question.results, question.asks
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

Json = dict[str, Any]
DIALECTS = ("chat", "responses", "messages", "ollama", "gemini")


class Offered(NamedTuple):
    """A tool that the client declared."""

    name: str
    schema: Json


class Question(NamedTuple):
    """What was asked, and of which file the task is about. `nth` counts the requests for one
    bad server, from 1."""

    api: str
    body: Json
    stream: bool
    file: str = "hello.txt"
    edits: bool = False
    nth: int = 1

    @property
    def tools(self) -> list[Offered]:
        entries = dicts(self.body.get("tools")) or _listed(self.body)
        return [_offered(each) for entry in entries for each in _entries(entry) if _name(each)]

    @property
    def in_words(self) -> bool:
        """Are tools offered in the prompt, so that calls are text?"""
        return not self.body.get("tools") and bool(_listed(self.body))

    @property
    def turns(self) -> list[Json]:
        """The conversation, in the dialect's own words."""
        said = self.body.get("messages") or self.body.get("input") or self.body.get("contents") or []
        return [{"role": "user", "content": said}] if isinstance(said, str) else dicts(said)

    @property
    def results(self) -> int:
        """How many results of tools the client has sent since the user last said something. A call that was not run,
        which the model is told in the same way, has none."""
        count = 0
        for turn in self.turns:
            here = _results(turn)
            is_told = _is_told(turn)
            count = 0 if turn.get("role") == "user" and not here and not is_told else count + here * (not is_told)
        return count

    @property
    def is_told(self) -> bool:
        """Is the model told what was wrong with its last answer?"""
        return bool(self.turns) and _is_told(self.turns[-1])

    @property
    def calls(self) -> list[Json]:
        """The calls of the history, in the dialect's own words."""
        return [call for turn in self.turns for call in _calls(turn)]

    @property
    def asks(self) -> str:
        """The last words of a user."""
        users = [turn for turn in self.turns if turn.get("role") == "user" and not (_results(turn) or _is_told(turn))]
        return _words(users[-1]) if users else ""

    @property
    def told(self) -> str:
        """All words of users."""
        return "\n".join([_words(turn) for turn in self.turns if turn.get("role") == "user" and not _results(turn)])

    @property
    def rounds(self) -> int:
        """How often results were sent, however many at once; what the proxy says of a call that it did not let through
        is none."""
        turns = [turn for turn in self.turns if not _is_told(turn)]
        came = [bool(_results(turn)) for turn in turns]
        return sum([here and not before for before, here in zip([False, *came], came, strict=False)])

    @property
    def choice(self) -> str:
        """`auto`, `none`, `required`, or the name of a tool that is demanded; in words, where the tools are."""
        said = self._told_choice if self.in_words else ""
        return said or self._field

    @property
    def _told_choice(self) -> str:
        return "required" if "Begin your response with a tool call" in text_of(self.body) else ""

    @property
    def _field(self) -> str:
        if self.api == "gemini":
            config = (self.body.get("toolConfig") or {}).get("functionCallingConfig") or {}
            named = config.get("allowedFunctionNames") or []
            mode = {"ANY": "required", "NONE": "none"}.get(str(config.get("mode")), "auto")
            return str(named[0]) if mode == "required" and len(named) == 1 else mode
        said = self.body.get("tool_choice")
        if isinstance(said, dict):
            inner = said.get("function")
            named = (inner if isinstance(inner, dict) else said).get("name")
            return str(named) if named else {"any": "required", "none": "none"}.get(str(said.get("type")), "auto")
        return said if said in ("none", "required") else "auto"


def dicts(value: Any) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _listed(body: Json) -> list[Json]:
    """The tools that a prompt lists, one JSON line each."""
    found = re.findall(r"<tools>\\n(\{.*?\})\\n</tools>", text_of(body))
    lines = json.loads(f'"{found[-1]}"').split("\n") if found else []
    return [json.loads(line) for line in lines]


def _entries(entry: Json) -> list[Json]:
    """The functions of an entry of `tools`; those of other kinds are none."""
    if "functionDeclarations" in entry or "function_declarations" in entry:
        return dicts(entry.get("functionDeclarations") or entry.get("function_declarations"))
    if isinstance(entry.get("function"), dict):
        return [entry["function"]]
    return [entry] if entry.get("type", "function") in ("function", "custom") and "format" not in entry else []


def _name(function: Json) -> str:
    return str(function.get("name") or "")


def _offered(function: Json) -> Offered:
    keys = ("parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema")
    found = [function[key] for key in keys if isinstance(function.get(key), dict)]
    return Offered(_name(function), found[0] if found else {"type": "object", "properties": {}})


def _parts(turn: Json) -> list[Json]:
    return dicts(turn.get("content")) + dicts(turn.get("parts"))


def _results(turn: Json) -> int:
    found = [part for part in _parts(turn) if part.get("type") == "tool_result" or "functionResponse" in part]
    is_result = turn.get("role") == "tool" or str(turn.get("type", "")).endswith("call_output")
    marks = ("Observation:", "<tool_response>")  # of those that have no role for results
    told = turn.get("role") == "user" and any(mark in _words(turn) for mark in marks)
    return len(found) or int(is_result or told)


def _is_told(turn: Json) -> bool:
    said = text_of(turn)
    return any(words in said for words in ("was not run", "could not be used", "[guard"))


def _calls(turn: Json) -> list[Json]:
    if turn.get("type") == "function_call":
        return [turn]
    inside = [part for part in _parts(turn) if part.get("type") == "tool_use" or "functionCall" in part]
    return dicts(turn.get("tool_calls")) + inside


def _words(turn: Json) -> str:
    if isinstance(turn.get("content"), str):
        return str(turn["content"])
    return "\n".join([str(part["text"]) for part in _parts(turn) if isinstance(part.get("text"), str)])


def text_of(body: Json) -> str:
    """All of a request, as text to look for something in."""
    return json.dumps(body, ensure_ascii=False)
