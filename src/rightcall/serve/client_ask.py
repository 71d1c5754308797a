"""What a client sent, and what its server is asked: the values of one request on its way."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from rightcall.api_names import Api
from rightcall.backends.request import Request
from rightcall.ids import Ids
from rightcall.providers.sdk_view import objects, text
from rightcall.types import Json


class ClientAsk(msgspec.Struct, frozen=True, kw_only=True):
    """What a client sent: in which dialect, for which model, as a stream or not, and what the address says beside."""

    api: Api
    raw: bytes
    headers: Mapping[str, str]
    query: str = ""
    model: str = ""
    stream: bool | None = None


class UpstreamQuestion(msgspec.Struct, frozen=True):
    """What the server is asked: as it is `asked`, the history in the shape of Chat if it had to be `changed`, what the
    model is told when it is asked `again`, and whether as a `stream`."""

    asked: Request
    changed: list[Json] | None
    stream: bool
    again: tuple[Json, ...] = ()


def taken_ids(messages: list[Json]) -> Ids:
    """Ids that none of the conversation's calls has."""
    ids = Ids()
    for message in messages:
        for call in objects(message.get("tool_calls")):
            ids.take(text(call.get("id")))
    return ids


def with_query(url: str, query: str) -> str:
    """The address with what the client's says beside its path, but for a key, and for what the address says itself."""
    kept = [each for each in query.split("&") if each and not each.startswith(("key=", "alt="))]
    return "&".join([url if not kept or "?" in url else f"{url}?{kept.pop(0)}", *kept])
