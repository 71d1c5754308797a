"""How replies are read: the options that commands over one reply, and over many, share."""

from __future__ import annotations

import msgspec

from rightcall.cli.inputs import (
    FormatFile,
    FormatName,
    Policy,
    ReasoningCalls,
    ReasoningCallsPolicy,
    RepairPolicy,
    Rescue,
    RescuePolicy,
    ToolsFile,
)


class ReadingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which format, which tools, and how much may be put right."""

    format: FormatName = "auto"
    format_file: FormatFile = None
    tools: ToolsFile = None
    repair: RepairPolicy = Policy.safe
    rescue: RescuePolicy = Rescue.safe
    reasoning_calls: ReasoningCallsPolicy = ReasoningCalls.safe
