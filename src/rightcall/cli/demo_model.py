"""The demo's last scene: what a real model writes. It is asked here and now if it is there; else a recording answers.

Both are asked what the recording was asked, at temperature 0, so they say the same or nearly so.
"""

from __future__ import annotations

from pathlib import Path

from rightcall.backends.cassette import load
from rightcall.backends.local import LocalBackend
from rightcall.backends.replay import ReplayBackend
from rightcall.backends.request import Answer, Request
from rightcall.cli.demo_scenes import Scene
from rightcall.errors import BackendError
from rightcall.tools.toolset import Toolset
from rightcall.types import Json, Tool

RECORDING = Path(__file__).with_name("demo_model.jsonl")
MODEL = "smollm2"


def _tool(name: str, **properties: Json) -> Tool:
    return Tool(name=name, parameters={"type": "object", "properties": properties, "required": list(properties)})


_TEXT: Json = {"type": "string"}
_CONDITION: Json = {"type": "object", "properties": {"column": _TEXT, "operator": _TEXT, "value": _TEXT}}
TOOLS = Toolset(  # the tools that the recorded question offers
    [
        _tool("get_directions", origin=_TEXT, destination=_TEXT, mode=_TEXT),
        _tool("query_table", table=_TEXT, where=_CONDITION, limit={"type": "integer"}),
    ]
)


def model_scene(*, recorded: bool = False) -> Scene:
    """What the model says now, or what it said; the scene says which."""
    if recorded:
        return _scene(ReplayBackend(RECORDING).complete_sync(_request()), f"a recording of {MODEL}, as you asked")
    try:
        with LocalBackend(MODEL) as backend:
            return _scene(backend.complete_sync(_request()), f"{MODEL}, run on this machine just now")
    except BackendError as error:
        return _scene(ReplayBackend(RECORDING).complete_sync(_request()), f"a recording of {MODEL} ({error})")


def _request() -> Request:
    """The question of the recording."""
    body = load(RECORDING).exchanges[0].request.body or {}
    return Request(
        messages=body["messages"],
        temperature=body["temperature"],
        max_tokens=body["max_tokens"],
        seed=body["seed"],
    )


def _scene(answer: Answer, source: str) -> Scene:
    return Scene(
        "A model of 135 million weights is asked for the way to a museum",
        "a bracket too many or a key in the wrong place, and a strict JSON reader loses the call",
        "hermes",
        str(answer.raw["choices"][0]["message"]["content"]),
        tools=TOOLS,
        source=source,
    )
