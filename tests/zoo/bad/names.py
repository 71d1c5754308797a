"""Calls that name no tool, or name the arguments otherwise than the schema."""

from __future__ import annotations

from typing import Any

from zoo.bad_server import ALL, BadServer
from zoo.question import Question
from zoo.script import Said
from zoo.spoiling import renamed, until_told


def named(name: str, write: Any, saw: str, reports: str, **more: Any) -> BadServer:
    return BadServer(name, "wrong_names", saw, says=renamed(write), reports=reports, **more)


def other_keys(said: Said, question: Question) -> Said:
    call = said.call
    given = {{"path": "file_path"}.get(key, key): value for key, value in call.arguments.items()}
    return said._replace(calls=(call._replace(arguments=given),))


def other_case(said: Said, question: Question) -> Said:
    call = said.call
    return said._replace(
        calls=(call._replace(arguments={key.title(): value for key, value in call.arguments.items()}),)
    )


UNKNOWN = "a call of a tool that does not exist"
SERVERS = [
    named(
        "name_with_control_tokens",
        lambda name: f"{name}<|channel|>commentary",
        UNKNOWN,
        "vllm-project/vllm#32587 vllm-project/vllm#35906",
        apis=("chat", "responses", "messages"),
    ),
    named("name_in_namespace", lambda name: f"functions.{name}", UNKNOWN, "tinyhumansai/openhuman#4118", apis=ALL),
    named("name_in_capitals", str.upper, UNKNOWN, "livekit/agents#6085", apis=("chat", "messages", "ollama")),
    named("name_with_dashes", lambda name: name.replace("_", "-"), UNKNOWN, "zed-industries/zed#29946"),
    named(
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
        sees="the call that the model made when it was told the names",
        apis=ALL,
        says=until_told(renamed(lambda name: "browser_open")),
        reports="zed-industries/zed#29946 livekit/agents#6085 vercel/ai#2786",
    ),
    BadServer(
        "other_parameter_names",
        "wrong_parameters",
        "an argument that is missing, and one that nobody knows",
        apis=ALL,
        says=other_keys,
        settings={"repair": "lenient"},
        reports="openclaw/openclaw#52164 cortexkit/aft#148",
    ),
    BadServer(
        "parameter_names_in_capitals",
        "wrong_parameters",
        "an argument that is missing, and one that nobody knows",
        apis=("chat", "ollama"),
        says=other_case,
        reports="openclaw/openclaw#57554",
    ),
]
