"""The call comes back as text: `tool_calls` is empty, `finish_reason` is "stop", and the agent stops."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from zoo.bad_server import ALL, BadServer
from zoo.question import Question
from zoo.script import Made, Said, written_out
from zoo.spoiling import as_text, twice

CHAT_LIKE = ("chat", "responses", "messages", "ollama")


def written(call: Made) -> str:
    return json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)


def hermes(calls: Sequence[Made]) -> str:
    return written_out(Said(calls=tuple(calls)))


def bare(calls: Sequence[Made]) -> str:
    return " \n".join([written(call) for call in calls])


def fenced(calls: Sequence[Made]) -> str:
    return f"```json\n{written(calls[0])}\n```"


def mistral(calls: Sequence[Made]) -> str:
    return f"[TOOL_CALLS][{', '.join(map(written, calls))}]"


def harmony(calls: Sequence[Made]) -> str:
    head = f"<|channel|>commentary to=functions.{calls[0].name} <|constrain|>json<|message|>"
    return f"<|channel|>analysis<|message|>I must look.<|end|><|start|>assistant{head}{calls[0].text}<|call|>"


def gemma(calls: Sequence[Made]) -> str:
    given = ",".join([f'{key}:<|"|>{value}<|"|>' for key, value in calls[0].arguments.items()])
    return f"<|tool_call>call:{calls[0].name}{{{given}}}<tool_call|>"


def coder(calls: Sequence[Made]) -> str:
    given = "".join([f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in calls[0].arguments.items()])
    return f"<tool_call>\n<function={calls[0].name}>\n{given}</function>\n</tool_call>"


def without_arguments(calls: Sequence[Made]) -> str:
    return json.dumps({"name": calls[0].name})


def leaks(name: str, write: Callable[[Sequence[Made]], str], reports: str, **more: object) -> BadServer:
    given = {"saw": "the call's own text in the answer, and the end of the turn", "apis": CHAT_LIKE, **more}
    return BadServer(name, "call_as_text", says=as_text(write), reports=reports, **given)  # type: ignore[arg-type]


def at_the_border(said: Said, question: Question) -> Said:
    """The marker comes with the end of the reasoning, and the parser of the server has not looked."""
    return Said(text=hermes(said.calls), reasoning="I will read the file.")


SERVERS = [
    leaks("leaks_hermes", hermes, "ollama/ollama#11185 aaif-goose/goose#3748 vllm-project/vllm#17161", apis=ALL),
    leaks("leaks_bare", bare, "NousResearch/hermes-agent#87900"),
    leaks("leaks_two_bare", bare, "NousResearch/hermes-agent#87900", means=twice, sees="both calls"),
    leaks(
        "leaks_no_arguments", without_arguments, "NousResearch/hermes-agent#87900", scene="no_arguments", apis=("chat",)
    ),
    leaks("leaks_fenced", fenced, "continuedev/continue#12131 continuedev/continue#12890"),
    leaks("leaks_mistral", mistral, "jundot/omlx#2565 vllm-project/vllm#39468", apis=("chat", "messages")),
    leaks("leaks_harmony", harmony, "anomalyco/opencode#1034", apis=("chat", "responses")),
    leaks("leaks_gemma", gemma, "vllm-project/vllm#40911", apis=("chat",)),
    leaks("wrong_parser", coder, "vllm-project/vllm#21571 vllm-project/vllm#47903", apis=("chat", "responses")),
    BadServer(
        "leaks_behind_reasoning",
        "call_as_text",
        "the call's own text in the answer, behind the reasoning",
        apis=("chat", "messages"),
        says=at_the_border,
        reports="vllm-project/vllm#40911",
    ),
]
