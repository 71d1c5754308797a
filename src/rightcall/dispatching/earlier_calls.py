"""What happened before: is it the same call again, is it worth trying again, what of it should be told?

fingerprint(Call("f", {"a": 1, "b": 2}, "")) == fingerprint(Call("f", {"b": 2, "a": 1.0}, ""))
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, Literal

from rightcall.dispatching.result import Kind, Result
from rightcall.types import Call

RetryClass = Literal["transient", "permanent"]

_TRANSIENT: frozenset[Kind] = frozenset({"failed", "timed_out"})


def retry_class(result: Result) -> RetryClass | None:
    """Is the call of this `result` worth another try? "transient" or "permanent"; None for one that did not fail. What
    the model, a hook or the caller got wrong goes wrong the same way again."""
    if not result.error:
        return None
    return "transient" if result.kind in _TRANSIENT else "permanent"


def fingerprint(call: Call) -> str:
    """The same text for each `call` that asks for the same: neither the order of keys nor the spelling of a number
    counts."""
    text = json.dumps([call.name, _canonical(call.arguments)], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def repair_history(results: Iterable[Result]) -> list[Result]:
    """Of these `results` one for each different call, in the order they were first made: its first success, else its
    last failure. Doing it twice changes nothing."""
    kept: dict[str, Result] = {}
    for result in results:
        key = fingerprint(result.call)
        if key not in kept or kept[key].error:
            kept[key] = result
    return list(kept.values())
