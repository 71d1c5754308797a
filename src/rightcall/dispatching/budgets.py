"""Budgets for calls, tokens and time, and the count of calls that were repeated earlier in the conversation."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Protocol

from rightcall.dispatching.bounded_output import to_json_text
from rightcall.dispatching.hook import Hook, Invocation, Terminate
from rightcall.dispatching.plain_json_values import plain
from rightcall.dispatching.result import Kind, Result
from rightcall.errors import CallerError
from rightcall.types import Call

RetryClass = Literal["transient", "permanent"]

_TRANSIENT: frozenset[Kind] = frozenset({"failed", "timed_out"})


def retry_class(result: Result) -> RetryClass | None:
    """Return whether the failed call of this `result` is worth a retry: "transient" if its tool, or a hook before
    it, raised or timed out, else "permanent". None for a call that did not fail."""
    if not result.error:
        return None
    return "transient" if result.kind in _TRANSIENT else "permanent"


def fingerprint(call: Call) -> str:
    """Return the SHA-256 of name and arguments of this `call`, in hexadecimal: the same text for equal calls.

    Neither the order of keys nor the notation of a number (1 or 1.0) matters.
    """
    text = json.dumps([call.name, _canonical(call.arguments)], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(value: Any) -> Any:
    """Return a copy of JSON data in which equal values are alike: whole floats are integers, tuples are lists, keys are
    strings. The order of keys is kept."""
    if isinstance(value, dict):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def repair_history(results: Iterable[Result]) -> list[Result]:
    """Return one of these `results` for each different call, in the order in which the calls were first made.

    The first success of a call is kept, else its last failure. Applying it again changes nothing.
    """
    kept: dict[str, Result] = {}
    for result in results:
        key = fingerprint(result.call)
        if key not in kept or kept[key].error:
            kept[key] = result
    return list(kept.values())


Cost = float | Mapping[str, float] | Callable[[Invocation], float]


class BudgetFailed(CallerError):
    """A negative cost or number of tokens was reserved or recorded."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"budget failed: {cause}")


class BudgetGuard(Protocol):
    """The methods that `BudgetHook` needs of a budget, so that one shared by several machines can replace `Budget`."""

    def try_reserve(self, cost: float) -> bool:
        """Reserve this `cost`, all of it or nothing, and return whether it was available."""

    def release(self, cost: float) -> None:
        """Make this `cost`, which was reserved, available again."""


class Budget:
    """An amount that may be in use: `capacity` in any unit. Safe to share between threads."""

    def __init__(self, capacity: float) -> None:
        if not capacity >= 0:
            raise CallerError(f"a budget has a capacity of 0 or more, not {capacity!r}")
        self.capacity = capacity
        self._used = 0.0
        self._lock = threading.Lock()

    @property
    def used(self) -> float:
        """Return how much is in use or spent, in the unit of the capacity."""
        return self._used

    @property
    def left(self) -> float:
        """Return how much may still be reserved."""
        return max(0.0, self.capacity - self._used)

    @property
    def utilisation(self) -> float:
        """Return used divided by capacity: above 1 if more was spent than the capacity; 1 for a capacity of 0."""
        return self._used / self.capacity if self.capacity else 1.0

    def try_reserve(self, cost: float) -> bool:
        """Reserve this `cost`, all of it or nothing, and return whether it was available. Raises `BudgetFailed` for
        a negative cost."""
        if not cost >= 0:
            raise BudgetFailed(f"a cost is 0 or more, not {cost!r}")
        with self._lock:
            if self._used + cost > self.capacity:
                return False
            self._used += cost
            return True

    def release(self, cost: float) -> None:
        """Make this `cost` available again, as after `try_reserve`; what is used never falls below 0."""
        with self._lock:
            self._used = max(0.0, self._used - cost)

    def spend(self, cost: float) -> None:
        """Add this `cost` to what is used, even beyond the capacity: it has been spent already."""
        with self._lock:
            self._used += cost

    def refill(self) -> None:
        """Make the whole capacity available again: nothing counts as used."""
        with self._lock:
            self._used = 0.0


class BudgetHook(Hook):
    """Reserves the cost of each call, and ends the batch when the budget does not cover it.

    - `budget`: a `Budget`, or any implementation of `BudgetGuard`.
    - `cost`: one cost for every call, a cost by tool name, or a function of the invocation.
    - `keeps`: when the cost is not released: when the call has "completed" (a budget for the whole conversation), or
      "never" (a limit on what is in use at the same time).
    - `name`: what messages call the budget.
    """

    def __init__(
        self,
        budget: BudgetGuard,
        *,
        cost: Cost = 1.0,
        keeps: Literal["completed", "never"] = "completed",
        name: str = "budget",
    ) -> None:
        self.budget, self._cost, self._keeps, self._name = budget, cost, keeps, name
        self._reserved: dict[Invocation, float] = {}

    def before(self, invocation: Invocation) -> Terminate | None:
        """Reserve the cost of this `invocation` and return None; if the budget does not cover it, return a `Terminate`,
        which ends the batch. Raises `BudgetFailed` for a negative cost."""
        cost = self.cost(invocation)
        if not self.budget.try_reserve(cost):
            return Terminate(f"{self._name} denied `{invocation.call.name}` at cost {cost:g}")
        self._reserved[invocation] = cost
        return None

    def after(self, invocation: Invocation, result: Result) -> None:
        """Keep the reserved cost of this `invocation` if `keeps` is "completed" and the `result` is of kind
        "completed"; release it otherwise."""
        cost = self._reserved.pop(invocation, None)
        if cost is not None and (self._keeps == "never" or result.kind != "completed"):
            self.budget.release(cost)

    def cleanup(self, invocation: Invocation, error: BaseException) -> None:
        """Release the cost of this `invocation`, whatever the `error`."""
        cost = self._reserved.pop(invocation, None)
        if cost is not None:
            self.budget.release(cost)

    def cost(self, invocation: Invocation) -> float:
        """Return the cost of this `invocation`; 0 for a tool that a mapping of costs does not name."""
        if callable(self._cost):
            return self._cost(invocation)
        return self._cost.get(invocation.call.name, 0.0) if isinstance(self._cost, Mapping) else self._cost


def call_budget(most: int) -> BudgetHook:
    """Return a hook that lets `most` calls complete, and ends the batch at the next call. Calls that do not complete
    are not counted."""
    return BudgetHook(Budget(most), name="call budget")


class Reservation:
    """A number of `tokens` of a `budget`, reserved by `TokenBudget.reserve`; a context manager.

    One that is dropped without `record` releases all of them."""

    def __init__(self, budget: Budget, tokens: float) -> None:
        self._budget, self._tokens = budget, tokens

    def record(self, tokens: float) -> None:
        """Release the reserved tokens and spend the `tokens` that were really used instead, even if they are more.
        Raises `BudgetFailed` for a negative number."""
        if not tokens >= 0:
            raise BudgetFailed(f"{tokens!r} tokens cannot have been used")
        self.refund()
        self._budget.spend(tokens)

    def refund(self) -> None:
        """Release all reserved tokens. A second call does nothing."""
        self._budget.release(self._tokens)
        self._tokens = 0

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *_: object) -> None:
        self.refund()

    def __del__(self) -> None:
        self.refund()


class TokenBudget(Budget):
    """A `Budget` of tokens: `capacity` is how many. An estimate is reserved first and replaced by the real number
    later."""

    def reserve(self, estimate: float) -> Reservation | None:
        """Reserve this `estimate` of tokens and return the reservation; None if not enough are left. Raises
        `BudgetFailed` for a negative number."""
        return Reservation(self, estimate) if self.try_reserve(estimate) else None


def about_tokens(text: str) -> int:
    """Estimate the number of tokens of a text: one for each four bytes of UTF-8, and one more."""
    return len(text.encode("utf-8", "replace")) // 4 + 1


class TokenHook(Hook):
    """Reserves an estimate of a call's tokens and replaces it by the tokens of the call and its result.

    - `budget`: the tokens of all calls.
    - `estimate`: what is reserved for a call.
    - `count`: counts the tokens of a text; by default one for four bytes.
    """

    def __init__(
        self, budget: TokenBudget, *, estimate: int = 1_000, count: Callable[[str], int] = about_tokens
    ) -> None:
        self.budget, self._estimate, self._count = budget, estimate, count
        self._reserved: dict[Invocation, Reservation] = {}

    def before(self, invocation: Invocation) -> Terminate | None:
        """Reserve the estimate for this `invocation`; return a `Terminate`, which ends the batch, if too few tokens
        are left."""
        reservation = self.budget.reserve(self._estimate)
        if reservation is None:
            return Terminate(f"token budget denied `{invocation.call.name}` at {self._estimate} tokens")
        self._reserved[invocation] = reservation
        return None

    def after(self, invocation: Invocation, result: Result) -> None:
        """Replace the reserved estimate for this `invocation` by the counted tokens of its arguments and of its
        `result`, even if they exceed the budget."""
        reservation = self._reserved.pop(invocation, None)
        if reservation is None:
            return
        output = plain(result.output)
        text = output if isinstance(output, str) else to_json_text(output)
        reservation.record(self._count(to_json_text(plain(invocation.call.arguments))) + self._count(text))

    def cleanup(self, invocation: Invocation, error: BaseException) -> None:
        """Release the reservation of this `invocation`, whatever the `error`."""
        reservation = self._reserved.pop(invocation, None)
        if reservation is not None:
            reservation.refund()


class TimeBudget(Hook):
    """A hook that lets no call start later than `seconds` after the first. `clock` returns the time in seconds."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._started: float | None = None

    def before(self, invocation: Invocation) -> Terminate | None:
        """Return a `Terminate`, which ends the batch, if this `invocation` starts more than `seconds` after the first
        one that this hook saw; otherwise None."""
        now = self._clock()
        if self._started is None:
            self._started = now
        if now - self._started > self._seconds:
            return Terminate(f"time budget denied `{invocation.call.name}`: {self._seconds:g} seconds are over")
        return None
