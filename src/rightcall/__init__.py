"""rightcall turns what any language model writes into tool calls that can be trusted.

    reply = rightcall.parse(text, tools=tools, format="hermes")

Everything listed in `__all__` may be relied on. Names are imported when they are first used, and so is what they need:
importing the package alone, as pytest does for its plugin, costs next to nothing.
"""

from typing import TYPE_CHECKING

from rightcall.lazy_names import load_lazily

if TYPE_CHECKING:
    from rightcall import formats
    from rightcall.backends.sdk_client import wrap
    from rightcall.constrain.builder import GrammarBounds
    from rightcall.constrain.grammars import grammar
    from rightcall.contracts import contract
    from rightcall.contracts.protocol import canonical, feedback
    from rightcall.datasets.rows.batch_parsing import parse_many
    from rightcall.dispatching.dispatcher import dispatch, dispatch_sync
    from rightcall.dispatching.result import Result, answers
    from rightcall.dispatching.trace import Trace
    from rightcall.errors import CannotCarry, RightcallError, UnknownFormat
    from rightcall.formats.spec import Format
    from rightcall.guard.judgement import Guard
    from rightcall.ids import Ids
    from rightcall.loop.conversation import Conversation
    from rightcall.loop.task_runner import Runner, run, run_sync
    from rightcall.parsing.detection import detect
    from rightcall.parsing.options import Limits
    from rightcall.parsing.parser import Parser, parse, select
    from rightcall.parsing.rendering import render
    from rightcall.providers.provider_answers import Stream, read, read_all
    from rightcall.repairs.whole_call import repair
    from rightcall.tools.checks import check
    from rightcall.tools.functions import tool
    from rightcall.tools.toolset import Toolset
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

__version__ = "0.1.0"

__all__ = [
    "Arguments",
    "Call",
    "CallEnd",
    "CallStart",
    "CannotCarry",
    "Conversation",
    "Done",
    "Format",
    "GrammarBounds",
    "Guard",
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
    "Runner",
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
    "parse_many",
    "read",
    "read_all",
    "render",
    "repair",
    "run",
    "run_sync",
    "select",
    "tool",
    "wrap",
]

_MODULES = "backends datasets errors formats guard hooks loop masks mcp messages testing workspace".split()

__getattr__ = load_lazily(
    __name__,
    {
        "GrammarBounds": "rightcall.constrain.builder",
        "Stream": "rightcall.providers.provider_answers",
        "read": "rightcall.providers.provider_answers",
        "read_all": "rightcall.providers.provider_answers",
        "wrap": "rightcall.backends.sdk_client",
        "check": "rightcall.tools.checks",
        "grammar": "rightcall.constrain.grammars",
        "contract": "rightcall.contracts",
        "canonical": "rightcall.contracts.protocol",
        "feedback": "rightcall.contracts.protocol",
        "tool": "rightcall.tools.functions",
        "Toolset": "rightcall.tools.toolset",
        "answers": "rightcall.dispatching.result",
        "dispatch": "rightcall.dispatching.dispatcher",
        "dispatch_sync": "rightcall.dispatching.dispatcher",
        "Result": "rightcall.dispatching.result",
        "Trace": "rightcall.dispatching.trace",
        "CannotCarry": "rightcall.errors",
        "RightcallError": "rightcall.errors",
        "UnknownFormat": "rightcall.errors",
        "Format": "rightcall.formats.spec",
        "Guard": "rightcall.guard.judgement",
        "Ids": "rightcall.ids",
        "Conversation": "rightcall.loop.conversation",
        "Runner": "rightcall.loop.task_runner",
        "run": "rightcall.loop.task_runner",
        "run_sync": "rightcall.loop.task_runner",
        "repair": "rightcall.repairs.whole_call",
        "parse_many": "rightcall.datasets.rows.batch_parsing",
        "Arguments": "rightcall.types",
        "Call": "rightcall.types",
        "CallEnd": "rightcall.types",
        "CallStart": "rightcall.types",
        "Done": "rightcall.types",
        "Problem": "rightcall.types",
        "Reasoning": "rightcall.types",
        "Recast": "rightcall.types",
        "Repair": "rightcall.types",
        "Reply": "rightcall.types",
        "Span": "rightcall.types",
        "Text": "rightcall.types",
        "Tool": "rightcall.types",
        "detect": "rightcall.parsing.detection",
        "Limits": "rightcall.parsing.options",
        "Parser": "rightcall.parsing.parser",
        "parse": "rightcall.parsing.parser",
        "render": "rightcall.parsing.rendering",
        "select": "rightcall.parsing.parser",
    },
    modules=_MODULES,
)


def __dir__() -> list[str]:
    """Return the names of the module, with those that are imported on first use, sorted."""
    return sorted({*globals(), *__all__, *_MODULES})
