"""Instructions that the scripted model follows in addition to its task, as needed by clients that probe a server.

It follows a response schema, says hello, writes a given text, calls twice on request, fills in a city, and stops at the
token limit.
"""

from __future__ import annotations

import re
from typing import Any

from zoo.question import Json, Question
from zoo.script import Output, ScriptedCall, fill_arguments

_WRITES = re.compile(r"exactly this text to (\S+): (.+)", re.DOTALL)
_CUT = {"chat": "length", "responses": "length", "messages": "max_tokens", "ollama": "length", "gemini": "MAX_TOKENS"}
_WHOLE_CALLS = ("ollama", "gemini")


def follow_instructions(question: Question, output: Output) -> Output:
    """Return the output for such an instruction; otherwise the output of the script."""
    if schema := _answer_schema(question.body):
        return Output(text=ScriptedCall("", fill_arguments(schema, question.file, "")).text)
    if question.last_user_text.startswith("Say ") and question.choice in ("auto", "none"):
        return Output(text="Hello there.")
    if output.calls and not question.results:
        output = _with_content(output, question.last_user_text)
        output = output._replace(calls=tuple([_with_city(call, "Oslo") for call in output.calls]))
        if "twice" in question.last_user_text and len(output.calls) == 1:
            second = _with_city(output.call._replace(id=f"{output.call.id}b"), "Rome")
            output = output._replace(calls=(output.call, second))
    return _apply_limit(output, question)


def _answer_schema(body: Json) -> Json:
    """Return the response schema, wherever the dialect has it."""
    config = body.get("generationConfig") or {}
    response_format = body.get("response_format") or (body.get("text") or {}).get("format") or {}
    schemas = [
        (response_format.get("json_schema") or {}).get("schema"),
        response_format.get("schema"),
        body.get("format"),
        config.get("responseSchema"),
        config.get("responseJsonSchema"),
        ((body.get("output_config") or {}).get("format") or {}).get("schema"),
    ]
    return next((each for each in schemas if isinstance(each, dict)), {})


def _with_content(output: Output, text: str) -> Output:
    match = _WRITES.search(text)
    if match is None or "content" not in output.call.arguments:
        return output
    return output._replace(calls=(output.call._replace(arguments={"path": match[1], "content": match[2]}),))


def _with_city(call: ScriptedCall, city: str) -> ScriptedCall:
    return call._replace(arguments={**call.arguments, "city": city}) if "city" in call.arguments else call


# -- limits ------------------------------------------------------------------------------------------------------------


def _limit(body: Json) -> Any:
    config, options = body.get("generationConfig") or {}, body.get("options") or {}
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    return next(
        (body[name] for name in names if body.get(name)), config.get("maxOutputTokens") or options.get("num_predict")
    )


def _apply_limit(output: Output, question: Question) -> Output:
    """Truncate the last call at the token limit, and report the limit."""
    limit = _limit(question.body)
    if not isinstance(limit, int) or not output.calls or sum(len(call.text) for call in output.calls) <= limit * 4:
        return output
    finish = _CUT[question.api]
    if question.api in _WHOLE_CALLS:
        return Output(finish=finish)
    last = output.calls[-1]
    return output._replace(calls=(*output.calls[:-1], last._replace(raw=last.text[: limit * 3])), finish=finish)
