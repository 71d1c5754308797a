"""rightcall turns what any language model writes into tool calls that can be trusted.

    reply = rightcall.parse(text, tools=tools, format="hermes")

Everything listed in `__all__` may be relied on. Names that not every program needs are imported on first use.
"""

from typing import TYPE_CHECKING

from rightcall import formats
from rightcall.declare.toolset import Toolset
from rightcall.errors import CannotCarry, RightcallError, UnknownFormat
from rightcall.formats.spec import Format
from rightcall.ids import Ids
from rightcall.lazy_names import on_first_use
from rightcall.types import (
    Arguments,
    Call,
    CallEnd,
    CallStart,
    Done,
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
    from rightcall.apis.stream import Stream
    from rightcall.apis.whole import read, read_all
    from rightcall.backends.sdk_client import wrap
    from rightcall.checks import check
    from rightcall.constrain.build import grammar
    from rightcall.contracts import contract
    from rightcall.contracts.protocol import canonical, feedback
    from rightcall.declare.functions import tool
    from rightcall.dispatching.answering import answers
    from rightcall.dispatching.dispatcher import dispatch, dispatch_sync
    from rightcall.dispatching.result import Result
    from rightcall.dispatching.trace import Trace
    from rightcall.repairs.finish import repair
    from rightcall.wire.detection import detect
    from rightcall.wire.rendering import render
    from rightcall.wire.selection import select

__version__ = "0.1.0"

__all__ = [
    "Arguments",
    "Call",
    "CallEnd",
    "CallStart",
    "CannotCarry",
    "Done",
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

__getattr__ = on_first_use(
    __name__,
    {
        "check": "rightcall.checks",
        "contract": "rightcall.contracts",
        "repair": "rightcall.repairs.finish",
        "answers": "rightcall.dispatching.answering",
        "Result": "rightcall.dispatching.result",
        "Stream": "rightcall.apis.stream",
        "Trace": "rightcall.dispatching.trace",
        "canonical": "rightcall.contracts.protocol",
        "detect": "rightcall.wire.detection",
        "dispatch": "rightcall.dispatching.dispatcher",
        "dispatch_sync": "rightcall.dispatching.dispatcher",
        "feedback": "rightcall.contracts.protocol",
        "grammar": "rightcall.constrain.build",
        "read": "rightcall.apis.whole",
        "read_all": "rightcall.apis.whole",
        "render": "rightcall.wire.rendering",
        "select": "rightcall.wire.selection",
        "tool": "rightcall.declare.functions",
        "wrap": "rightcall.backends.sdk_client",
    },
)
