"""A call on its way to a client: under the client's own name for the tool, as the kind of call that the tool wants.

{"type": "custom", "name": "apply_patch"}  ->  a call of kind "custom", with free text
{"type": "namespace", ...}                 ->  a function call that names its namespace
"""

from __future__ import annotations

import msgspec

from rightcall.providers.dialect import argument_text, custom_input
from rightcall.serve.client_request import ClientRequest, ToolKind
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.types import Call, Json

_CUSTOM = ("custom", "custom_tool_call")  # how a server's own call of one says it


class OutgoingCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call. `extras` are fields that the server wants back with it; `call` is None while its arguments come."""

    id: str
    name: str
    kind: ToolKind = "function"
    namespace: str = ""
    call_type: str = ""
    extras: Json = {}
    call: Call | None = None

    @property
    def arguments(self) -> str:
        """The arguments as JSON text, always an object."""
        return "" if self.call is None else argument_text(self.call)

    @property
    def parsed(self) -> msgspec.Raw:
        """The same as a value to be written."""
        return msgspec.Raw(self.arguments.encode("utf-8", "replace") or b"{}")

    @property
    def input(self) -> str:
        """The free text of a custom call."""
        return "" if self.call is None else custom_input(self.call)


def outgoing(
    request: ClientRequest, id: str, name: str, call: Call | None = None, extras: Json | None = None
) -> OutgoingCall:
    """The call as this client wants it."""
    tool = request.tool(name)
    fields = dict(extras or {})
    said = fields.pop("type", "")
    if tool is None:
        kind: ToolKind = "custom" if said in _CUSTOM else "function"
        return OutgoingCall(id=id, name=name, kind=kind, extras=fields, call=call)
    return OutgoingCall(
        id=id,
        name=tool.name or name,
        kind=tool.kind,
        namespace=tool.namespace,
        call_type=tool.call_type,
        extras=fields,
        call=call,
    )


class LiveCall:
    """A call whose arguments come piece by piece. A `held` one is written when it is whole: its kind has no pieces."""

    def __init__(self, call: OutgoingCall, offered: str, *, held: bool) -> None:
        self.call, self.held = call, held
        self.offered = offered
        self.pieces: list[str] = []

    @property
    def json(self) -> str:
        return "".join(self.pieces)

    def whole(self) -> OutgoingCall | None:
        """The call with its arguments; None if what came is no whole object."""
        said = self.json
        arguments = decode(said, MAX_DEPTH) if said.strip() else {}
        if not isinstance(arguments, dict):
            return None
        call = Call(self.offered, arguments, said if said.strip() else "{}", self.call.id)
        return msgspec.structs.replace(self.call, call=call)
