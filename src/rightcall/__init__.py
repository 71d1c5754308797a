"""rightcall turns what any language model writes into tool calls that can be trusted."""

from rightcall import formats
from rightcall.apis.read import read, read_all
from rightcall.apis.stream import Stream
from rightcall.check import check
from rightcall.declare.functions import tool
from rightcall.declare.toolset import Toolset
from rightcall.errors import CannotCarry, RightcallError, UnknownFormat
from rightcall.formats.spec import Format
from rightcall.ids import Ids
from rightcall.parse.detect import detect
from rightcall.parse.engine import Limits
from rightcall.parse.parser import Parser, parse
from rightcall.parse.render import render
from rightcall.parse.select import select
from rightcall.repair.settle import repair
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
    "RightcallError",
    "Span",
    "Stream",
    "Text",
    "Tool",
    "Toolset",
    "UnknownFormat",
    "__version__",
    "check",
    "detect",
    "formats",
    "parse",
    "read",
    "read_all",
    "render",
    "repair",
    "select",
    "tool",
]
