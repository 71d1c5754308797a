"""A request in any dialect: the offered tools, the results so far, the last text of the user.

question = Question("chat", body, stream=True)
question.tools[0].name, question.results, question.last_user_text
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

Json = dict[str, Any]
DIALECTS = ("chat", "responses", "messages", "ollama", "gemini")


class OfferedTool(NamedTuple):
    """A tool that the client declared."""

    name: str
    schema: Json


class Question(NamedTuple):
    """One request, and the file of the task. `nth` counts the requests to one bad server, from 1."""

    api: str
    body: Json
    stream: bool
    file: str = "hello.txt"
    edits: bool = False
    nth: int = 1

    @property
    def tools(self) -> list[OfferedTool]:
        entries = dicts(self.body.get("tools")) or _tools_in_text(self.body)
        return [_to_offered_tool(each) for entry in entries for each in _entries(entry) if _name(each)]

    @property
    def tools_in_prompt(self) -> bool:
        """Return whether tools are offered in the prompt, so that calls are text."""
        return not self.body.get("tools") and bool(_tools_in_text(self.body))

    @property
    def turns(self) -> list[Json]:
        """Return the conversation, in the dialect's own form."""
        messages = self.body.get("messages") or self.body.get("input") or self.body.get("contents") or []
        return [{"role": "user", "content": messages}] if isinstance(messages, str) else dicts(messages)

    @property
    def results(self) -> int:
        """Return the number of tool results since the last message of the user.

        A call that was not run has no result, although the model gets feedback about it in the same form.
        """
        count = 0
        for turn in self.turns:
            count_here = _results(turn)
            has_feedback = _is_feedback(turn)
            count = (
                0
                if turn.get("role") == "user" and not count_here and not has_feedback
                else count + count_here * (not has_feedback)
            )
        return count

    @property
    def has_feedback(self) -> bool:
        """Return whether the last message is feedback about the model's last answer."""
        return bool(self.turns) and _is_feedback(self.turns[-1])

    @property
    def calls(self) -> list[Json]:
        """Return the calls of the history, in the dialect's own form."""
        return [call for turn in self.turns for call in _calls(turn)]

    @property
    def last_user_text(self) -> str:
        """Return the last text of a user."""
        users = [
            turn for turn in self.turns if turn.get("role") == "user" and not (_results(turn) or _is_feedback(turn))
        ]
        return _text_of_turn(users[-1]) if users else ""

    @property
    def user_text(self) -> str:
        """Return all texts of users."""
        return "\n".join(
            [_text_of_turn(turn) for turn in self.turns if turn.get("role") == "user" and not _results(turn)]
        )

    @property
    def rounds(self) -> int:
        """Return how often results were sent, however many at once. Feedback of the proxy is no result."""
        turns = [turn for turn in self.turns if not _is_feedback(turn)]
        with_results = [bool(_results(turn)) for turn in turns]
        return sum(
            [
                count_here and not before
                for before, count_here in zip([False, *with_results], with_results, strict=False)
            ]
        )

    @property
    def choice(self) -> str:
        """Return `auto`, `none`, `required`, or the name of a forced tool; from the prompt, if the tools are in it."""
        prompt_choice = self._choice_in_prompt if self.tools_in_prompt else ""
        return prompt_choice or self._field

    @property
    def _choice_in_prompt(self) -> str:
        return "required" if "Begin your response with a tool call" in text_of(self.body) else ""

    @property
    def _field(self) -> str:
        if self.api == "gemini":
            config = (self.body.get("toolConfig") or {}).get("functionCallingConfig") or {}
            name = config.get("allowedFunctionNames") or []
            mode = {"ANY": "required", "NONE": "none"}.get(str(config.get("mode")), "auto")
            return str(name[0]) if mode == "required" and len(name) == 1 else mode
        choice = self.body.get("tool_choice")
        if isinstance(choice, dict):
            inner = choice.get("function")
            name = (inner if isinstance(inner, dict) else choice).get("name")
            return str(name) if name else {"any": "required", "none": "none"}.get(str(choice.get("type")), "auto")
        return choice if choice in ("none", "required") else "auto"


def dicts(value: Any) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _tools_in_text(body: Json) -> list[Json]:
    """Return the tools in a prompt, which has one JSON line for each."""
    found = re.findall(r"<tools>\\n(\{.*?\})\\n</tools>", text_of(body))
    lines = json.loads(f'"{found[-1]}"').split("\n") if found else []
    return [json.loads(line) for line in lines]


def _entries(entry: Json) -> list[Json]:
    """Return the functions of an entry of `tools`; other types of tools have none."""
    if "functionDeclarations" in entry or "function_declarations" in entry:
        return dicts(entry.get("functionDeclarations") or entry.get("function_declarations"))
    if isinstance(entry.get("function"), dict):
        return [entry["function"]]
    return [entry] if entry.get("type", "function") in ("function", "custom") and "format" not in entry else []


def _name(function: Json) -> str:
    return str(function.get("name") or "")


def _to_offered_tool(function: Json) -> OfferedTool:
    keys = ("parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema")
    found = [function[key] for key in keys if isinstance(function.get(key), dict)]
    return OfferedTool(_name(function), found[0] if found else {"type": "object", "properties": {}})


def _parts(turn: Json) -> list[Json]:
    return dicts(turn.get("content")) + dicts(turn.get("parts"))


def _results(turn: Json) -> int:
    found = [part for part in _parts(turn) if part.get("type") == "tool_result" or "functionResponse" in part]
    is_result = turn.get("role") == "tool" or str(turn.get("type", "")).endswith("call_output")
    marks = ("Observation:", "<tool_response>")  # of formats without a role for results
    is_marked = turn.get("role") == "user" and any(mark in _text_of_turn(turn) for mark in marks)
    return len(found) or int(is_result or is_marked)


def _is_feedback(turn: Json) -> bool:
    text = text_of(turn)
    return any(phrase in text for phrase in ("was not run", "could not be used", "[guard"))


def _calls(turn: Json) -> list[Json]:
    if turn.get("type") == "function_call":
        return [turn]
    inside = [part for part in _parts(turn) if part.get("type") == "tool_use" or "functionCall" in part]
    return dicts(turn.get("tool_calls")) + inside


def _text_of_turn(turn: Json) -> str:
    if isinstance(turn.get("content"), str):
        return str(turn["content"])
    return "\n".join([str(part["text"]) for part in _parts(turn) if isinstance(part.get("text"), str)])


def text_of(body: Json) -> str:
    """Return the whole request as text to search in."""
    return json.dumps(body, ensure_ascii=False)
