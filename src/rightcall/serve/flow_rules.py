"""How an answer may go on to a client, and what its first words tell."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from rightcall.api_names import Api
from rightcall.serve.client_request import ClientRequest
from rightcall.serve.deferred_tools import DeferredTools
from rightcall.serve.proxy_settings import ProxySettings
from rightcall.tools.toolset import Toolset

_ANNOUNCEMENT = 300  # characters of text that wait under the full guard: more is no mere announcement of a call
_LIVE: tuple[Api, ...] = ("chat", "responses", "messages")  # the others have no word for a piece of a call
_WORD = re.compile(r"\s*+([A-Za-z][\w\-]*+)").match
_SPACES = re.compile(r"\.|__|[/:]")


def _none(_name: str) -> bool:
    return False


class FlowRules(msgspec.Struct, frozen=True, kw_only=True):
    """How an answer may go on.

    - `same`: server and client speak the same dialect, and the request went up as it came.
    - `streamed`: the client wants it as it comes.
    - `holds_text`: a call is demanded; text waits until there is one.
    - `holds_first`: so many characters of text wait for more, in case they are all and only announce a call.
    - `holds_calls`: calls wait for the end, where somebody judges them.
    - `live`: arguments of the server's own calls go on as they come.
    - `passes`: such a call that turns out to break its schema stays as it was written.
    - `parallel`: more than one call may go on.
    - `may_call`: whether a tool of this name may be called though it is not declared.
    """

    same: bool = False
    streamed: bool = True
    holds_text: bool = False
    holds_first: int = 0
    holds_calls: bool = False
    live: bool = False
    passes: bool = False
    parallel: bool = True
    may_call: Callable[[str], bool] = _none


def flow_rules(request: ClientRequest, settings: ProxySettings, *, same: bool) -> FlowRules:
    """How the answer to this request may go on."""
    return FlowRules(
        same=same,
        streamed=request.stream,
        holds_text=request.choice not in ("auto", "none") and settings.guard != "none",
        holds_first=_ANNOUNCEMENT if settings.guard == "full" and request.tools else 0,
        holds_calls=settings.guard == "full",
        live=settings.stream_calls == "live" and request.api in _LIVE,
        passes=settings.give_up == "pass",
        parallel=request.parallel,
        may_call=DeferredTools(request).may_call,
    )


def is_prose(text: str, tools: Toolset | None) -> bool:
    """Does an answer that begins with this text say something? Its first word may be a tool's name yet, where it begins
    as the name of one does."""
    found = _WORD(text)
    if found is None:
        return False
    begins, names = _letters(found[1]), tools.names if tools is not None else ()
    return not any(_letters(part).startswith(begins) for name in names for part in (name, _SPACES.split(name)[-1]))


def _letters(name: str) -> str:
    return "".join([char for char in name.lower() if char.isalnum()])
