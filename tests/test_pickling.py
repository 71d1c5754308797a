"""Values, toolsets and exceptions are equal after pickle, copy and a transfer to another process."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

import rightcall
from rightcall import Call, Problem, Repair, Reply, RightcallError, Span, Text, Toolset, dispatch_sync, parse, read
from rightcall.errors import ModelError
from rightcall.types import Done, Reasoning, Recast
from support import pickled_tools

TEXT = '<tool_call>{"name": "look", "arguments": {"town": "Oslo", "days": "2"}}</tool_call>'
TOOLS = Toolset(pickled_tools.look, pickled_tools.wait, pickled_tools.Place)
COPY_METHODS: list[Callable[[Any], Any]] = [lambda value: pickle.loads(pickle.dumps(value)), copy.copy, copy.deepcopy]  # noqa: S301


def _errors() -> list[type[RightcallError]]:
    """Return every exception class of the package."""
    for module in pkgutil.walk_packages(rightcall.__path__, "rightcall."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ImportError:  # an extra that is not installed
                continue
    found: list[type[RightcallError]] = [RightcallError]
    for each in found:
        found += [kind for kind in each.__subclasses__() if kind not in found]
    return [each for each in found if each.__module__.startswith("rightcall.")]


def _error_instance(kind: type[RightcallError]) -> RightcallError:
    """Return an instance of this class with suitable arguments."""
    values = {
        "str": "é'x",
        "bytes": b"x",
        "Mapping[str, str]": {"a": "b"},
        "int": 3,
        "float": 2.5,
        "float | None": 2.5,
        "list[tuple[Where, str]]": [("a:1", "secret")],
    }
    init = kind.__init__
    if init is Exception.__init__:
        return kind("é'x")
    taken = [each for name, each in inspect.signature(init).parameters.items() if name != "self"]
    return kind(*[values[each.annotation] for each in taken if each.kind is each.POSITIONAL_OR_KEYWORD])


@pytest.mark.parametrize("kind", _errors(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("copy_value", COPY_METHODS, ids=["pickle", "copy", "deepcopy"])
def test_an_exception_survives_pickle_and_copy(kind: type[RightcallError], copy_value: Callable[[Any], Any]) -> None:
    error = _error_instance(kind)
    back = copy_value(error)
    assert type(back) is kind and back == error and str(back) == str(error) and repr(back) == repr(error)
    assert back.__dict__ == error.__dict__


VALUES: list[Any] = [
    Call("f", {"x": [1, None]}, problems=(Problem("x", "y"),), repairs=(Repair("r", "exact", "/x", "1", "[1]"),)),
    Reply((Text("a", "tag"), Reasoning("b"), Call("f")), spans=(Span(0, 1, "text"),), extras={"": {"s": "t"}}),
    Done("x"),
    Recast(3, "call"),
    parse(TEXT, tools=TOOLS, spans=True),
    read({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": {"total_tokens": 3}}),
    dispatch_sync(Call("look", {"city": "Oslo"}), TOOLS)[0],
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("copy_value", COPY_METHODS, ids=["pickle", "copy", "deepcopy"])
def test_a_value_survives_pickle_and_copy(value: Any, copy_value: Callable[[Any], Any]) -> None:
    back = copy_value(value)
    assert back == value and repr(back) == repr(value)


@pytest.mark.parametrize("copy_value", COPY_METHODS, ids=["pickle", "copy", "deepcopy"])
def test_a_toolset_of_functions_survives_pickle_and_copy_and_runs(copy_value: Callable[[Any], Any]) -> None:
    back = copy_value(TOOLS)
    assert back.names == TOOLS.names and back.definitions(extensions=True) == TOOLS.definitions(extensions=True)
    assert pickled_tools.run_calls(TEXT, back) == ["2 days of sun in Oslo"]
    assert copy_value(TOOLS.scoped(["wait"])).names == ("wait",)


def test_a_toolset_runs_in_another_process() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(pickled_tools.run_calls, TEXT, TOOLS).result(120) == ["2 days of sun in Oslo"]


def test_an_exception_carries_its_problems() -> None:
    reply = parse('<tool_call>{"name": "look", "arguments": {}}</tool_call>', tools=TOOLS)
    with pytest.raises(ModelError) as caught:
        reply.raise_for_problems()
    assert caught.value.problems == reply.problems != ()
    assert pickle.loads(pickle.dumps(caught.value)).problems == reply.problems  # noqa: S301
