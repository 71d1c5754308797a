"""A call in the syntax of a format, in two parts that can be damaged separately: the arguments, and the body."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

Arguments = dict[str, Any]


class Wire(msgspec.Struct, frozen=True):
    """Functions that write a call.

    `arguments` writes the arguments, `body` adds the name to that text, `block` adds the markers around the body.
    Without a `format`, the argument text goes to `repair` as from a provider.
    """

    name: str
    format: str
    arguments: Callable[[Arguments], str]
    body: Callable[[str, str], str]
    block: Callable[[str], str]
    notation: str = "json"


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _as_python(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join([f"{key!r}: {_as_python(item)}" for key, item in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_as_python, value)) + "]"
    return repr(value)


def _as_keywords(arguments: Arguments) -> str:
    return ", ".join([f"{key}={_as_python(item)}" for key, item in arguments.items()])


def _as_script(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join([f"{key}: {_as_script(item)}" for key, item in value.items()]) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_as_script, value)) + "]"
    return as_json(value)


def _envelope(key: str = "arguments") -> Callable[[str, str], str]:
    return lambda name, text: f'{{"name": {as_json(name)}, "{key}": {text}}}'


def _tags(arguments: Arguments) -> str:
    return "".join([f"<parameter={key}>\n{_raw(item)}\n</parameter>\n" for key, item in arguments.items()])


def _raw(value: Any) -> str:
    return value if isinstance(value, str) else as_json(value)


def _between(opens: str, closes: str) -> Callable[[str], str]:
    return lambda body: f"{opens}{body}{closes}"


WIRES: tuple[Wire, ...] = (
    Wire("hermes", "hermes", as_json, _envelope(), _between("<tool_call>\n", "\n</tool_call>")),
    Wire("auto", "auto", as_json, _envelope(), _between("<tool_call>\n", "\n</tool_call>")),
    Wire("generic_json", "generic_json", as_json, _envelope(), _between("", "")),
    Wire("mistral", "mistral", as_json, _envelope(), _between("[TOOL_CALLS][", "]")),
    Wire("llama3_json", "llama3_json", as_json, _envelope("parameters"), _between("", "")),
    Wire(
        "mistral_v11",
        "mistral_v11",
        as_json,
        lambda name, text: f"{name}[ARGS]{text}",
        _between("[TOOL_CALLS]", "</s>"),
    ),
    Wire("functionary_v31", "functionary_v31", as_json, lambda name, text: f"<function={name}>{text}</function>", str),
    Wire("repair", "", as_json, lambda name, text: text, str),
    Wire("pythonic", "pythonic", _as_keywords, lambda name, text: f"[{name}({text})]", str, "python"),
    Wire(
        "lfm2",
        "lfm2",
        _as_keywords,
        lambda name, text: f"[{name}({text})]",
        _between("<|tool_call_start|>", "<|tool_call_end|>"),
        "python",
    ),
    Wire(
        "contract",
        "contract",
        _as_script,
        lambda name, text: f"{name}({text})",
        _between("<tool_call>\n", "\n</tool_call>"),
        "script",
    ),
    Wire(
        "qwen3_coder",
        "qwen3_coder",
        _tags,
        lambda name, text: f"<function={name}>\n{text}</function>",
        _between("<tool_call>\n", "\n</tool_call>"),
        "tags",
    ),
)
