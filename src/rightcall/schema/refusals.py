"""A definition that cannot be used, told in parts: which tool, where in it, why, and what to write instead."""

from __future__ import annotations

import msgspec

from rightcall.errors import BadTools


class Refused(BadTools):
    """`path` is a JSON Pointer into what was passed. `given`: the fault is in a definition, which is data that came
    from somebody else, and not in what the caller wrote in Python."""

    given = False

    def __init__(self, path: str, cause: str, cure: str, *, tool: str = "") -> None:
        who = f"tool {tool!r}" if tool else "a tool definition"
        super().__init__(f"{who} cannot be used: {f'{path}: ' if path else ''}{cause}; {cure}")
        self.tool, self.path, self.cause, self.cure = tool, path, cause, cure

    def within(self, prefix: str = "", *, tool: str = "") -> Refused:
        """The same fault, seen from further outside."""
        seen = Refused(prefix + self.path, self.cause, self.cure, tool=self.tool or tool)
        seen.given = self.given
        return seen


class Refusal(msgspec.Struct, frozen=True):
    """A definition that a lenient toolset left out: the `source` it came from, the `tool` it names, the `path` of the
    fault in it (a JSON Pointer), and a `message` that says what is wrong and what would do."""

    source: str
    tool: str
    path: str
    message: str
