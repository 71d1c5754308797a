"""The options and limits of parsing, their validation, and the finish reasons of providers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from rightcall.errors import CallerError
from rightcall.repairs.finish import POLICIES
from rightcall.strict_json import MAX_CHECKED_DEPTH
from rightcall.tools.toolset import ToolLike, Toolset, is_none_choice

Policy = Literal["off", "safe", "lenient"]
Rescue = Literal["off", "safe"]
ReasoningCalls = Literal["never", "safe"]
_ALLOWED = {
    "reasoning": ("auto", "open", "off"),
    "repair": POLICIES,
    "rescue": ("off", "safe"),
    "reasoning_calls": ("never", "safe"),
}


class Limits(msgspec.Struct, frozen=True):
    """How much is parsed. Beyond a limit a problem is reported. A call that is too large or too deep keeps its text; a
    reply with too much text or too many calls is plain text from there on.

    - `reply`: characters of a whole reply.
    - `call`: characters of one call.
    - `depth`: brackets inside brackets; more than 240 count as 240, because deeper values cannot be checked.
    - `calls`: calls in a reply.
    """

    reply: int = 16_000_000
    call: int = 4_000_000
    depth: int = 200
    calls: int = 256


_LIMITS = Limits()


class ReadOptions(msgspec.Struct, frozen=True):
    """The validated options of `parse`.

    - `choice`: the only tool that the request allows. `forbidden`: the request allows none.
    - `live`: arguments are emitted while they arrive, which needs declared tools.
    - `previews`: whether events report a call while it arrives, or only the finished call.
    """

    tools: Toolset | None = None
    reasoning: str = "auto"
    repair: str | Mapping[str, str] = "safe"
    choice: str | None = None
    spans: bool = False
    live: bool = False
    limits: Limits = _LIMITS
    rescue: str = "safe"
    reasoning_calls: str = "safe"
    forbidden: bool = False
    previews: bool = True


def read_options(
    tools: Toolset | Iterable[ToolLike] | None = None,
    reasoning: str = "auto",
    repair: str | Mapping[str, str] = "safe",
    rescue: str = "safe",
    reasoning_calls: str = "safe",
    choice: str | Mapping[str, Any] | None = None,
    spans: bool = False,
    live: bool = False,
    limits: Limits | None = None,
    previews: bool = True,
) -> ReadOptions:
    """Validate the options of `parse` and `Parser` and return them as one value. `live` is ignored without tools, and a
    depth above `MAX_CHECKED_DEPTH` is lowered to it; a `choice` of no tools sets `forbidden`. Raises `CallerError` for
    an invalid word in `reasoning`, `repair`, `rescue` or `reasoning_calls`, `BadTools` for invalid tools; `choice` is
    not checked."""
    if reasoning != "auto" or rescue != "safe" or reasoning_calls != "safe" or repair != "safe":
        _check_allowed(repair, reasoning=reasoning, rescue=rescue, reasoning_calls=reasoning_calls)
    toolset = tools if type(tools) is Toolset else Toolset.of(tools)
    chosen, forbidden = (None, False) if choice is None else _read_choice(choice)
    live = live and toolset is not None
    limits = limits or _LIMITS
    if limits.depth > MAX_CHECKED_DEPTH:
        limits = msgspec.structs.replace(limits, depth=MAX_CHECKED_DEPTH)
    return ReadOptions(
        toolset, reasoning, repair, chosen, spans, live, limits, rescue, reasoning_calls, forbidden, previews
    )


def _check_allowed(repair: str | Mapping[str, str], **options: str) -> None:
    """Raise `CallerError` unless each option, and `repair` or each of its values by tool, is one of the allowed
    words."""
    policies = (repair,) if isinstance(repair, str) else repair.values()
    for name, value in [*options.items(), *[("repair", policy) for policy in policies]]:
        if value not in _ALLOWED[name]:
            raise CallerError(f"{name}={value!r} is not one of {', '.join(_ALLOWED[name])}")


def _read_choice(choice: str | Mapping[str, Any]) -> tuple[str | None, bool]:
    """Return the only tool that a tool choice names (`"f"`, OpenAI's `{"function": {"name": "f"}}`, also `{"name":
    "f"}`), or None if it names none (`"auto"`, `"required"`, `"any"`, `""`, `"function"` or `"tool"`, also as its
    `type`, or a dict without either), and whether it forbids all tools (the name is None then). Any other word in its
    place, also as a `type` without a name, is a name."""
    if is_none_choice(choice):
        return None, True
    name: Any = choice
    if isinstance(choice, Mapping):
        inner = choice.get("function", choice)
        name = inner.get("name") if isinstance(inner, Mapping) else None
        name = name or choice.get("type")
    if name in (None, "", "auto", "required", "any", "function", "tool"):
        return None, False
    return str(name), False


# -- finish reasons ----------------------------------------------------------------------------------------------------

CUT = frozenset(("length", "content_filter", "error"))  # the finish reasons of truncated answers
_FINISH_REASONS: dict[str, tuple[str, ...]] = {
    "stop": ("end_turn", "stop_sequence", "completed", "eos", "eos_token", "end", "done"),
    "tool_calls": ("tool_use", "tool_call", "function_call"),
    "length": (
        *("max_tokens", "max_output_tokens", "max_length", "incomplete"),
        *("model_length", "context_length_exceeded", "model_context_window_exceeded", "error_limit"),
    ),
    "content_filter": (
        *("refusal", "safety", "content_filtered", "recitation", "language", "blocklist", "prohibited_content"),
        *("spii", "image_safety", "image_prohibited_content", "image_recitation", "guardrail_intervened"),
        "error_toxic",
    ),
    "error": (
        *("failed", "cancelled", "canceled", "abort", "aborted", "malformed_function_call", "malformed_response"),
        *("unexpected_tool_call", "too_many_tool_calls", "insufficient_system_resource", "network_error"),
        *("malformed_model_output", "malformed_tool_use", "user_cancel", "other"),
        *("in_progress", "queued"),  # read before the answer was complete
    ),
}
_NORMALIZED = {word: reason for reason, words in _FINISH_REASONS.items() for word in (reason, *words)}


def finish_of(word: str) -> str:
    """Return the normalized finish reason for a provider's word, in any case: stop, tool_calls, length, content_filter
    or error. An unknown word is returned as it is."""
    return _NORMALIZED.get(word.lower(), word)


def was_cut(word: str | None) -> bool:
    """Return whether a finish reason, normalized or a provider's word, says that the answer was truncated; False for
    None and for what is no str."""
    return isinstance(word, str) and finish_of(word) in CUT
