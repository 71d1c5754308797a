"""What the scripted model understands of what a user says, beside its task: enough for those who try a server out.

It holds to a schema for its answer, says hello, writes the text that it is given, calls twice if it is told so, names
a city where one is asked for, and stops at the limit of tokens that was set.
"""

from __future__ import annotations

import re
from typing import Any

from zoo.question import Json, Question
from zoo.script import Made, Said, filled

_WRITES = re.compile(r"exactly this text to (\S+): (.+)", re.DOTALL)
_CUT = {"chat": "length", "responses": "length", "messages": "max_tokens", "ollama": "length", "gemini": "MAX_TOKENS"}
_WHOLE_CALLS = ("ollama", "gemini")


def ordered(question: Question, said: Said) -> Said:
    """What is said to such an order; else as the script has it."""
    if wanted := _answer_schema(question.body):
        return Said(text=Made("", filled(wanted, question.file, "")).text)
    if question.asks.startswith("Say ") and question.choice in ("auto", "none"):
        return Said(text="Hello there.")
    if said.calls and not question.results:
        said = _written(said, question.asks)
        said = said._replace(calls=tuple([_placed(call, "Oslo") for call in said.calls]))
        if "twice" in question.asks and len(said.calls) == 1:
            second = _placed(said.call._replace(id=f"{said.call.id}b"), "Rome")
            said = said._replace(calls=(said.call, second))
    return _limited(said, question)


def _answer_schema(body: Json) -> Json:
    """The schema that the answer is to have, wherever the dialect says so."""
    config = body.get("generationConfig") or {}
    said = body.get("response_format") or (body.get("text") or {}).get("format") or {}
    found = [
        (said.get("json_schema") or {}).get("schema"),
        said.get("schema"),
        body.get("format"),
        config.get("responseSchema"),
        config.get("responseJsonSchema"),
        ((body.get("output_config") or {}).get("format") or {}).get("schema"),
    ]
    return next((each for each in found if isinstance(each, dict)), {})


def _written(said: Said, asks: str) -> Said:
    found = _WRITES.search(asks)
    if found is None or "content" not in said.call.arguments:
        return said
    return said._replace(calls=(said.call._replace(arguments={"path": found[1], "content": found[2]}),))


def _placed(call: Made, city: str) -> Made:
    return call._replace(arguments={**call.arguments, "city": city}) if "city" in call.arguments else call


# -- limits ------------------------------------------------------------------------------------------------------------


def _limit(body: Json) -> Any:
    config, options = body.get("generationConfig") or {}, body.get("options") or {}
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    return next(
        (body[name] for name in names if body.get(name)), config.get("maxOutputTokens") or options.get("num_predict")
    )


def _limited(said: Said, question: Question) -> Said:
    """A limit cuts the last call in the middle, and is told."""
    most = _limit(question.body)
    if not isinstance(most, int) or not said.calls or sum(len(call.text) for call in said.calls) <= most * 4:
        return said
    finish = _CUT[question.api]
    if question.api in _WHOLE_CALLS:
        return Said(finish=finish)
    last = said.calls[-1]
    return said._replace(calls=(*said.calls[:-1], last._replace(raw=last.text[: most * 3])), finish=finish)
