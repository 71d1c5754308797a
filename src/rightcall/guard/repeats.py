"""The same call again and again: told, then answered from what is known, then refused, then stopped.

What counts is a call that asks for the same and got the same. One that was made again after something was changed, in
an earlier turn or before it in the same one, asks anew; so does one whose result was another each time. Cycles of two
to four calls count as wholes.

A call that may change something (its tool is not `read_only`) and went well is not run a second time at all: what it
did is done, and an answer from what is known would let the model believe that it was done twice. It is told so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rightcall.dispatching.earlier_calls import fingerprint
from rightcall.dispatching.trace import Intervention
from rightcall.guard.intervention import GuardPolicy, told
from rightcall.guard.turn import PastCall, Turn
from rightcall.types import Call

_LONGEST_CYCLE = 4
_ECHO = 400  # characters of an earlier result that are shown again


def repeated(
    *, tell: int = 1, answer: int = 2, refuse: int = 3, stop: int = 5, window: int = 24, exempt: Sequence[str] = ()
) -> GuardPolicy:
    """A call that was made before with the same outcome.

    - `tell`, `answer`, `refuse`, `stop`: after so many earlier calls of the same it is told, answered with what it gave
      before without running, refused, and the task stopped. A number that is never reached switches one off. A call
      that went well and whose tool is not `read_only` is refused where another would be told or answered.
    - `window`: how many calls back are looked at.
    - `exempt`: tools that may be asked again and again, such as those that wait for something, or go one step further
      with each call.
    """
    levels = ((stop, "stop"), (refuse, "refuse"), (answer, "answer"), (tell, "tell"))

    def policy(turn: Turn) -> Iterator[Intervention]:
        past = [call for call in turn.calls[-window:] if _counts(call)]
        now: set[str] = set()
        changed = False  # by this reply, before the call
        for at, call in enumerate(turn.reply.attempts if turn.reply else ()):
            asks_anew, changed = changed, changed or (call.ok and _changes(turn, call.name))
            if call.name in exempt or not call.ok:
                continue
            if len(now) == len(now := now | {fingerprint(call)}):
                yield _said("twice", at, call, 1, "")
                continue
            same = [] if asks_anew else _same(turn, past, call)
            cycles = _cycles(past, call)
            count = max(len(same), cycles)
            action = next((action for least, action in levels if count >= least), None)
            known = next((each.result for each in reversed(same) if each.outcome == "ok"), None)
            if action in ("tell", "answer") and known is not None and same and _changes(turn, call.name):
                action = "hold"
            if action == "answer" and known is None:
                action = "refuse" if cycles >= answer else "tell"
            if action is not None:
                yield _said(action, at, call, count, known or "")

    return policy


def _counts(call: PastCall) -> bool:
    """A call that another policy refused may come again: that is what it was told to do."""
    return call.outcome in ("ok", "failed") or call.told == "repeated"


def _same(turn: Turn, past: Sequence[PastCall], call: Call) -> list[PastCall]:
    """Earlier calls of the same, up to the last change: a call of another kind that may have changed something."""
    mark = fingerprint(call)
    found: list[PastCall] = []
    for each in reversed(past):
        if each.name == call.name and each.fingerprint == mark:
            if each.outcome != "refused" and any(_differ(each, other) for other in found):
                return found[::-1] if len(found) > 1 else []
            found.append(each)
        elif each.outcome == "ok" and _changes(turn, each.name):
            break
    return found[::-1]


def _differ(one: PastCall, other: PastCall) -> bool:
    return other.outcome != "refused" and one.result != other.result


def _changes(turn: Turn, name: str) -> bool:
    tool = turn.tools.get(name) if turn.tools else None
    return tool is None or not tool.read_only


def _cycles(past: Sequence[PastCall], call: Call) -> int:
    """How many times the calls before this one went round the same few calls and results, of which this is the next."""
    best = 0
    for period in range(2, _LONGEST_CYCLE + 1):
        if len(past) < 2 * period or past[-period].name != call.name:
            continue
        if past[-period].fingerprint != fingerprint(call):
            continue
        rounds = 1
        last = [(each.fingerprint, each.told or each.result) for each in past[-period:]]
        while len(past) >= (rounds + 1) * period:
            block = past[-(rounds + 1) * period : -rounds * period]
            if [(each.fingerprint, each.told or each.result) for each in block] != last:
                break
            rounds += 1
        if rounds > 1 and len(set(last)) > 1:
            best = max(best, rounds)
    return best


def _said(action: str, at: int, call: Call, count: int, known: str) -> Intervention:
    times = f"{count} times before" if count > 1 else "before"
    reason = f"{call.name:.60} was called with the same arguments {times}, to the same end"
    words = {
        "tell": f"You made this very call {times} and got the same. Use what it gave, or try something else.",
        "twice": "This call stands in your reply twice; it was made once.",
        "hold": f"This call was not made a second time: it went well before and may have changed something. It gave: "
        f"{known[:_ECHO]}{'...' if len(known) > _ECHO else ''}. Go on from there.",
        "refuse": f"This call was not run: you made it {times} and got the same. Do something else, or answer now.",
        "stop": f"The task was stopped: the same call of {call.name:.60} came again and again.",
        "answer": "",
    }[action]
    message = known if action == "answer" else told("repeated", words)
    call_at = None if action == "stop" else at
    done = "refuse" if action in ("hold", "twice") else action
    return Intervention("repeated", done, reason, message, call_at)  # type: ignore[arg-type]
