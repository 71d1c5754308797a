"""The call is returned as text: `tool_calls` is empty, `finish_reason` is "stop", and the agent stops."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from zoo.bad_server import ALL, BadServer
from zoo.question import Question
from zoo.script import Output, ScriptedCall, render_output
from zoo.spoiling import as_text, twice

CHAT_LIKE = ("chat", "responses", "messages", "ollama")


def call_json(call: ScriptedCall) -> str:
    return json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)


def hermes(calls: Sequence[ScriptedCall]) -> str:
    return render_output(Output(calls=tuple(calls)))


def bare(calls: Sequence[ScriptedCall]) -> str:
    return " \n".join([call_json(call) for call in calls])


def fenced(calls: Sequence[ScriptedCall]) -> str:
    return f"```json\n{call_json(calls[0])}\n```"


def mistral(calls: Sequence[ScriptedCall]) -> str:
    return f"[TOOL_CALLS][{', '.join(map(call_json, calls))}]"


def harmony(calls: Sequence[ScriptedCall]) -> str:
    head = f"<|channel|>commentary to=functions.{calls[0].name} <|constrain|>json<|message|>"
    return f"<|channel|>analysis<|message|>I must look.<|end|><|start|>assistant{head}{calls[0].text}<|call|>"


def gemma(calls: Sequence[ScriptedCall]) -> str:
    fields = ",".join([f'{key}:<|"|>{value}<|"|>' for key, value in calls[0].arguments.items()])
    return f"<|tool_call>call:{calls[0].name}{{{fields}}}<tool_call|>"


def coder(calls: Sequence[ScriptedCall]) -> str:
    fields = "".join([f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in calls[0].arguments.items()])
    return f"<tool_call>\n<function={calls[0].name}>\n{fields}</function>\n</tool_call>"


def without_arguments(calls: Sequence[ScriptedCall]) -> str:
    return json.dumps({"name": calls[0].name})


def leaking_server(
    name: str, write: Callable[[Sequence[ScriptedCall]], str], reports: str, **more: object
) -> BadServer:
    fields = {"symptom": "the call's own text in the answer, and the end of the turn", "apis": CHAT_LIKE, **more}
    return BadServer(name, "call_as_text", output=as_text(write), reports=reports, **fields)  # type: ignore[arg-type]


def write_after_reasoning(output: Output, question: Question) -> Output:
    """Write the marker directly after the reasoning, where the server's parser does not look."""
    return Output(text=hermes(output.calls), reasoning="I will read the file.")


SERVERS = [
    leaking_server(
        "leaks_hermes", hermes, "ollama/ollama#11185 aaif-goose/goose#3748 vllm-project/vllm#17161", apis=ALL
    ),
    leaking_server("leaks_bare", bare, "NousResearch/hermes-agent#87900"),
    leaking_server("leaks_two_bare", bare, "NousResearch/hermes-agent#87900", intent=twice, result="both calls"),
    leaking_server(
        "leaks_no_arguments", without_arguments, "NousResearch/hermes-agent#87900", scene="no_arguments", apis=("chat",)
    ),
    leaking_server("leaks_fenced", fenced, "continuedev/continue#12131 continuedev/continue#12890"),
    leaking_server("leaks_mistral", mistral, "jundot/omlx#2565 vllm-project/vllm#39468", apis=("chat", "messages")),
    leaking_server("leaks_harmony", harmony, "anomalyco/opencode#1034", apis=("chat", "responses")),
    leaking_server("leaks_gemma", gemma, "vllm-project/vllm#40911", apis=("chat",)),
    leaking_server(
        "wrong_parser", coder, "vllm-project/vllm#21571 vllm-project/vllm#47903", apis=("chat", "responses")
    ),
    BadServer(
        "leaks_behind_reasoning",
        "call_as_text",
        "the call's own text in the answer, behind the reasoning",
        apis=("chat", "messages"),
        output=write_after_reasoning,
        reports="vllm-project/vllm#40911",
    ),
]
