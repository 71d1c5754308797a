"""Calls with the name of no tool, or with other argument names than the schema."""

from __future__ import annotations

from typing import Any

from zoo.bad_server import ALL, BadServer
from zoo.question import Question
from zoo.script import Output
from zoo.spoiling import rename_calls, until_feedback


def wrong_name_server(name: str, write: Any, symptom: str, reports: str, **more: Any) -> BadServer:
    return BadServer(name, "wrong_names", symptom, output=rename_calls(write), reports=reports, **more)


def rename_key(output: Output, question: Question) -> Output:
    call = output.call
    arguments = {{"path": "file_path"}.get(key, key): value for key, value in call.arguments.items()}
    return output._replace(calls=(call._replace(arguments=arguments),))


def change_case_of_keys(output: Output, question: Question) -> Output:
    call = output.call
    return output._replace(
        calls=(call._replace(arguments={key.title(): value for key, value in call.arguments.items()}),)
    )


UNKNOWN = "a call of a tool that does not exist"
SERVERS = [
    wrong_name_server(
        "name_with_control_tokens",
        lambda name: f"{name}<|channel|>commentary",
        UNKNOWN,
        "vllm-project/vllm#32587 vllm-project/vllm#35906",
        apis=("chat", "responses", "messages"),
    ),
    wrong_name_server(
        "name_in_namespace", lambda name: f"functions.{name}", UNKNOWN, "tinyhumansai/openhuman#4118", apis=ALL
    ),
    wrong_name_server(
        "name_in_capitals", str.upper, UNKNOWN, "livekit/agents#6085", apis=("chat", "messages", "ollama")
    ),
    wrong_name_server("name_with_dashes", lambda name: name.replace("_", "-"), UNKNOWN, "zed-industries/zed#29946"),
    wrong_name_server(
        "name_without_prefix",
        lambda name: name.rpartition("__")[2],
        UNKNOWN,
        "tinyhumansai/openhuman#4118",
        apis=("chat", "messages"),
        scene="prefixed",
    ),
    BadServer(
        "name_made_up",
        "wrong_names",
        UNKNOWN,
        result="the call that the model made when it was told the names",
        apis=ALL,
        output=until_feedback(rename_calls(lambda name: "browser_open")),
        reports="zed-industries/zed#29946 livekit/agents#6085 vercel/ai#2786",
    ),
    BadServer(
        "other_parameter_names",
        "wrong_parameters",
        "an argument that is missing, and one that nobody knows",
        apis=ALL,
        output=rename_key,
        settings={"repair": "lenient"},
        reports="openclaw/openclaw#52164 cortexkit/aft#148",
    ),
    BadServer(
        "parameter_names_in_capitals",
        "wrong_parameters",
        "an argument that is missing, and one that nobody knows",
        apis=("chat", "ollama"),
        output=change_case_of_keys,
        reports="openclaw/openclaw#57554",
    ),
]
