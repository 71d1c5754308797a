"""Fields of a server's answer that a writer does not write itself, for a client of the same dialect."""

from __future__ import annotations

from rightcall.types import Json


def unwritten(fields: Json, own: frozenset[str]) -> Json:
    """The fields that are not the writer's own. Null says nothing."""
    if fields.keys() <= own:
        return {}
    return {key: value for key, value in fields.items() if key not in own and value is not None}
