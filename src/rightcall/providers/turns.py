"""A reply as the turn of an assistant, and what its calls came to, in the words of each API.

history.append(message(reply, "messages"))
history += results("messages", [CallOutcome(call, "4 degrees")])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rightcall.api_names import api_name
from rightcall.providers.dialect import CallOutcome
from rightcall.providers.sniff import DIALECTS
from rightcall.types import Json, Reply


def message(reply: Reply, api: str = "chat") -> Any:
    """The assistant's turn; what the provider wants back is in it if it is this API that it came through."""
    name = api_name(api, DIALECTS)
    return DIALECTS[name].turn(reply, reply.extras if reply.api == name else {})


def results(api: str, outcomes: Sequence[CallOutcome], note: str = "") -> list[Json]:
    """The messages that answer calls, and a note to the model if there is one."""
    return DIALECTS[api_name(api, DIALECTS)].results(outcomes, note)
