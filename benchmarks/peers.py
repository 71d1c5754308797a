"""SGLang's detectors, from its published wheel, without its dependencies.

The wheel is fetched once into `benchmarks/.cache` (some 40 MB); only its function-call code is unpacked. What that code
imports but does not need in order to parse (torch, the server's request types, grammars, ...) is replaced by stand-ins.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import json
import logging
import subprocess
import sys
import types
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CACHE = Path(__file__).resolve().parent / ".cache"
NEEDED = ("sglang/srt/function_call/", "sglang/srt/parser/", "sglang/srt/environ.py")
SMALL = ("pydantic", "orjson", "partial-json-parser", "regex")  # parsing really needs these

# Our format's name: SGLang's.
NAMES = {
    "hermes": "hermes",
    "qwen3_coder": "qwen3_coder",
    "llama3_json": "llama3",
    "mistral_v3": "mistral",
    "pythonic": "pythonic",
    "lfm2": "lfm2",
    "deepseek_v3": "deepseekv3",
    "deepseek_v31": "deepseekv31",
    "deepseek_v32": "deepseekv32",
    "deepseek_v4": "deepseekv4",
    "glm45": "glm45",
    "poolside_v1": "poolside_v1",
    "hy_v3": "hunyuan",
    "kimi_k2": "kimi_k2",
    "kimi_k3": "kimi_k3",
    "harmony": "gpt-oss",
    "gemma4": "gemma4",
    "minimax_m2": "minimax-m2",
    "minimax_m3": "minimax-m3",
    "internlm2": "interns1",
    "step3": "step3",
    "minicpm5": "minicpm5",
    "dots": "dots",
    "apertus": "apertus2509",
    "gigachat31": "gigachat3",
    "cohere_command4": "cohere_command4",
}


class Unavailable(Exception):
    """The wheel cannot be downloaded, or cannot be imported here."""


def fetch() -> Path:
    """Return the folder with SGLang's code; download it first if necessary."""
    code, deps = CACHE / "sglang", CACHE / "deps"
    if not (code / "sglang").is_dir():
        CACHE.mkdir(exist_ok=True)
        print("fetching the sglang wheel (once, about 40 MB) ...", file=sys.stderr)
        _pip("download", "--no-deps", "--only-binary=:all:", "--dest", str(CACHE), "sglang")
        wheels = sorted(CACHE.glob("sglang-*.whl"))
        if not wheels:
            raise Unavailable("pip found no wheel")
        _unpack(wheels[-1], code)
    if not deps.is_dir():
        _pip("install", "--target", str(deps), *SMALL)
    return code


def _pip(*command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", *command, "--quiet", "--disable-pip-version-check"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise Unavailable((done.stderr.strip().splitlines() or ["pip failed"])[-1])


def _unpack(wheel: Path, code: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(code, [name for name in archive.namelist() if name.startswith(NEEDED)])


class _StubModule(types.ModuleType):
    """A stub module that has every attribute."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__class_getitem__": classmethod(lambda cls, item: cls)})


class _StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last import finder: creates stubs for modules that SGLang imports but parsing does not need."""

    tops = frozenset(("sglang", "torch", "transformers", "xgrammar", "llguidance", "numpy", "PIL", "fastapi", "openai"))

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] not in self.tops or name.startswith("sglang.srt.function_call"):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _StubModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        return None


def load() -> tuple[str, dict[str, type[Any]]]:
    """Return SGLang's version, and its detectors by our formats' names. Raise `Unavailable`."""
    code = fetch()
    sys.path.append(str(CACHE / "deps"))
    sys.meta_path.append(_StubFinder())
    for name in ("sglang", "sglang.srt"):  # their own __init__ files import most of the server
        package = types.ModuleType(name)
        package.__path__ = [str(code.joinpath(*name.split(".")))]
        sys.modules[name] = package
    logging.disable(logging.CRITICAL)
    try:
        table = importlib.import_module("sglang.srt.function_call.function_call_parser")
        known = table.FunctionCallParser.ToolCallParserEnum
    except Exception as error:
        raise Unavailable(f"its detectors do not import here: {type(error).__name__}: {error}") from error
    wheels = sorted(CACHE.glob("sglang-*.whl"))
    version = wheels[-1].name.split("-")[1] if wheels else "?"
    return version, {ours: known[theirs] for ours, theirs in NAMES.items() if theirs in known}


def as_tools(tools: Sequence[Any]) -> list[Any]:
    """Return our tools in the form that their detectors need."""
    return [
        types.SimpleNamespace(
            type="function",
            defer_loading=None,
            function=types.SimpleNamespace(
                name=tool.name,
                description="",
                parameters=tool.parameters,
                strict=False,
                key_order=[],
                defer_loading=None,
            ),
        )
        for tool in tools
    ]


Found = tuple[list[tuple[str, Any]], str]


def parse_whole(detector: type[Any], text: str, tools: list[Any]) -> Found:
    """Return calls and text of their parser for whole replies."""
    result = detector().detect_and_parse(text, tools)
    return [(call.name or "", _value(call.parameters)) for call in result.calls], result.normal_text or ""


def parse_streamed(detector: type[Any], pieces: Sequence[str], tools: list[Any]) -> Found:
    """Return calls and text, assembled from the output of their streaming parser."""
    parser = detector()
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    text = []
    for piece in pieces:
        result = parser.parse_streaming_increment(piece, tools)
        text.append(result.normal_text or "")
        for call in result.calls:
            if call.name:
                names[call.tool_index] = call.name
            arguments[call.tool_index] = arguments.get(call.tool_index, "") + (call.parameters or "")
    return [(names.get(i, ""), _value(arguments[i])) for i in sorted(arguments)], "".join(text)


def _value(arguments: str) -> Any:
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return None
