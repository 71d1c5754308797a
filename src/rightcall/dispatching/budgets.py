"""Budgets for calls, tokens and time, and the count of calls that were repeated earlier in the conversation."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Protocol

from rightcall.dispatching.bounded_output import written
from rightcall.dispatching.hook import Hook, Invocation, Terminate
from rightcall.dispatching.plain_json_values import plain
from rightcall.dispatching.result import Kind, Result
from rightcall.errors import CallerError
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


Cost = float | Mapping[str, float] | Callable[[Invocation], float]


class BudgetFailed(CallerError):
    """More was given back or recorded than was ever reserved."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"budget failed: {cause}")


class BudgetGuard(Protocol):
    """What `BudgetHook` needs of a budget, so that one shared by several machines can take its place."""

    def try_reserve(self, cost: float) -> bool:
        """Takes this `cost` if it is there, all of it or nothing, and says which."""

    def release(self, cost: float) -> None:
        """Gives this `cost` back."""


class Budget:
    """So much may be in use: `capacity` in any unit. Safe to share between threads."""

    def __init__(self, capacity: float) -> None:
        if not capacity >= 0:
            raise CallerError(f"a budget has a capacity of 0 or more, not {capacity!r}")
        self.capacity = capacity
        self._used = 0.0
        self._lock = threading.Lock()

    @property
    def used(self) -> float:
        """How much is in use, or spent."""
        return self._used

    @property
    def left(self) -> float:
        """How much may still be taken."""
        return max(0.0, self.capacity - self._used)

    @property
    def utilisation(self) -> float:
        """From 0 to 1; a budget of nothing is always used up."""
        return self._used / self.capacity if self.capacity else 1.0

    def try_reserve(self, cost: float) -> bool:
        """Takes this `cost` if it is there, all of it or nothing, and says which."""
        if not cost >= 0:
            raise BudgetFailed(f"a cost is 0 or more, not {cost!r}")
        with self._lock:
            if self._used + cost > self.capacity:
                return False
            self._used += cost
            return True

    def release(self, cost: float) -> None:
        """Gives this `cost` back. Never makes more of a budget than it was."""
        with self._lock:
            self._used = max(0.0, self._used - cost)

    def spend(self, cost: float) -> None:
        """Takes this `cost` whether it is there or not: it has been spent already."""
        with self._lock:
            self._used += cost

    def refill(self) -> None:
        """All of it may be used again."""
        with self._lock:
            self._used = 0.0


class BudgetHook(Hook):
    """Reserves what a call costs, and ends the batch where it is not there.

    - `budget`: a `Budget`, or anything that can do what a `BudgetGuard` can.
    - `cost`: of every call, by the tool's name, or what a function says of the invocation.
    - `keeps`: when it is not given back: when the call has "completed" (a budget for the whole conversation), or
      "never" (a limit on what is in use at the same time).
    - `name`: what a refusal calls it.
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
        """Reserves the cost of this `invocation`, or ends the batch."""
        cost = self.cost(invocation)
        if not self.budget.try_reserve(cost):
            return Terminate(f"{self._name} denied `{invocation.call.name}` at cost {cost:g}")
        self._reserved[invocation] = cost
        return None

    def after(self, invocation: Invocation, result: Result) -> None:
        """Gives the cost of this `invocation` back, unless the `result` says that it counts."""
        cost = self._reserved.pop(invocation, None)
        if cost is not None and (self._keeps == "never" or result.kind != "completed"):
            self.budget.release(cost)

    def cleanup(self, invocation: Invocation, error: BaseException) -> None:
        """Gives the cost of this `invocation` back, whatever the `error`."""
        cost = self._reserved.pop(invocation, None)
        if cost is not None:
            self.budget.release(cost)

    def cost(self, invocation: Invocation) -> float:
        """What this `invocation` costs."""
        if callable(self._cost):
            return self._cost(invocation)
        return self._cost.get(invocation.call.name, 0.0) if isinstance(self._cost, Mapping) else self._cost


def call_budget(most: int) -> BudgetHook:
    """A hook that lets at most so many calls complete (`most`), then ends the batch."""
    return BudgetHook(Budget(most), name="call budget")


class Reservation:
    """So many `tokens` of a `budget`, set aside by `TokenBudget.reserve`; a context manager. One that is dropped
    without `record` gives all of them back."""

    def __init__(self, budget: Budget, tokens: float) -> None:
        self._budget, self._tokens = budget, tokens

    def record(self, tokens: float) -> None:
        """Settles the reservation with the `tokens` that it really were. May be more than was reserved: it is spent all
        the same."""
        if not tokens >= 0:
            raise BudgetFailed(f"{tokens!r} tokens cannot have been used")
        self.refund()
        self._budget.spend(tokens)

    def refund(self) -> None:
        """Gives all of it back. May be called twice."""
        self._budget.release(self._tokens)
        self._tokens = 0

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *_: object) -> None:
        self.refund()

    def __del__(self) -> None:
        self.refund()


class TokenBudget(Budget):
    """A `Budget` of tokens, which are reserved by an estimate and settled afterwards; `capacity` is how many."""

    def reserve(self, estimate: float) -> Reservation | None:
        """Sets this `estimate` aside: the reservation, or None when there is not enough left."""
        return Reservation(self, estimate) if self.try_reserve(estimate) else None


def about_tokens(text: str) -> int:
    """A rule of thumb, four bytes each, for those who have no tokenizer at hand."""
    return len(text.encode("utf-8", "replace")) // 4 + 1


class TokenHook(Hook):
    """Reserves an estimate of a call's tokens and settles it with what the call and its result really have.

    - `budget`: what is left of all tokens.
    - `estimate`: what is reserved for a call.
    - `count`: counts the tokens of a text; one for four bytes unless given.
    """

    def __init__(
        self, budget: TokenBudget, *, estimate: int = 1_000, count: Callable[[str], int] = about_tokens
    ) -> None:
        self.budget, self._estimate, self._count = budget, estimate, count
        self._reserved: dict[Invocation, Reservation] = {}

    def before(self, invocation: Invocation) -> Terminate | None:
        """Reserves the estimate for this `invocation`, or ends the batch."""
        reservation = self.budget.reserve(self._estimate)
        if reservation is None:
            return Terminate(f"token budget denied `{invocation.call.name}` at {self._estimate} tokens")
        self._reserved[invocation] = reservation
        return None

    def after(self, invocation: Invocation, result: Result) -> None:
        """Settles the reservation of this `invocation` with the tokens of its arguments and of its `result`."""
        reservation = self._reserved.pop(invocation, None)
        if reservation is None:
            return
        output = plain(result.output)
        text = output if isinstance(output, str) else written(output)
        reservation.record(self._count(written(plain(invocation.call.arguments))) + self._count(text))

    def cleanup(self, invocation: Invocation, error: BaseException) -> None:
        """Gives the reservation of this `invocation` back, whatever the `error`."""
        reservation = self._reserved.pop(invocation, None)
        if reservation is not None:
            reservation.refund()


class TimeBudget(Hook):
    """A hook that lets no call start later than so many `seconds` after the first. `clock` tells the seconds."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._started: float | None = None

    def before(self, invocation: Invocation) -> Terminate | None:
        """Ends the batch if this `invocation` comes too late."""
        now = self._clock()
        if self._started is None:
            self._started = now
        if now - self._started > self._seconds:
            return Terminate(f"time budget denied `{invocation.call.name}`: {self._seconds:g} seconds are over")
        return None
