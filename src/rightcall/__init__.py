"""rightcall turns what any language model writes into tool calls that can be trusted.

    reply = rightcall.parse(text, tools=tools, format="hermes")

Everything listed in `__all__` may be relied on. Names that not every program needs are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rightcall import formats
from rightcall.declare.toolset import Toolset
from rightcall.errors import CannotCarry, RightcallError, UnknownFormat
from rightcall.formats.spec import Format
from rightcall.ids import Ids
from rightcall.types import (
    Arguments,
    Call,
    CallEnd,
    CallStart,
    Problem,
    Reasoning,
    Recast,
    Repair,
    Reply,
    Span,
    Text,
    Tool,
)
from rightcall.wire.options import Limits
from rightcall.wire.parser import Parser, parse

if TYPE_CHECKING:
    from rightcall.apis.read import read, read_all
    from rightcall.apis.stream import Stream
    from rightcall.backend.sdk_client import wrap
    from rightcall.check import check
    from rightcall.constrain.build import grammar
    from rightcall.contract import contract
    from rightcall.contract.protocol import canonical, feedback
    from rightcall.declare.functions import tool
    from rightcall.dispatch.answers import answers
    from rightcall.dispatch.dispatcher import dispatch, dispatch_sync
    from rightcall.dispatch.result import Result
    from rightcall.dispatch.trace import Trace
    from rightcall.repair.settle import repair
    from rightcall.wire.detect import detect
    from rightcall.wire.render import render
    from rightcall.wire.select import select

__version__ = "0.1.0"

__all__ = [
    "Arguments",
    "Call",
    "CallEnd",
    "CallStart",
    "CannotCarry",
    "Format",
    "Ids",
    "Limits",
    "Parser",
    "Problem",
    "Reasoning",
    "Recast",
    "Repair",
    "Reply",
    "Result",
    "RightcallError",
    "Span",
    "Stream",
    "Text",
    "Tool",
    "Toolset",
    "Trace",
    "UnknownFormat",
    "__version__",
    "answers",
    "canonical",
    "check",
    "contract",
    "detect",
    "dispatch",
    "dispatch_sync",
    "feedback",
    "formats",
    "grammar",
    "parse",
    "read",
    "read_all",
    "render",
    "repair",
    "select",
    "tool",
    "wrap",
]

_ON_FIRST_USE = {
    "answers": "rightcall.dispatch.answers",
    "Result": "rightcall.dispatch.result",
    "Stream": "rightcall.apis.stream",
    "Trace": "rightcall.dispatch.trace",
    "canonical": "rightcall.contract.protocol",
    "detect": "rightcall.wire.detect",
    "dispatch": "rightcall.dispatch.dispatcher",
    "dispatch_sync": "rightcall.dispatch.dispatcher",
    "feedback": "rightcall.contract.protocol",
    "grammar": "rightcall.constrain.build",
    "read": "rightcall.apis.read",
    "read_all": "rightcall.apis.read",
    "render": "rightcall.wire.render",
    "select": "rightcall.wire.select",
    "tool": "rightcall.declare.functions",
    "wrap": "rightcall.backend.sdk_client",
}


def __getattr__(name: str) -> Any:
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module 'rightcall' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_ON_FIRST_USE[name]), name)
    return found


# Functions that share their name with the package or module they live in: the function is the public one.
from rightcall.check import check  # noqa: E402
from rightcall.contract import contract  # noqa: E402
from rightcall.repair.settle import repair  # noqa: E402

# The same, but not every program needs this one: once the empty package is loaded and its name given back, the function
# is found on first use, and nothing puts the package in its place again.
import_module("rightcall.dispatch")
globals().pop("dispatch", None)
