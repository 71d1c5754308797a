"""Guard policies: each looks at the current turn and proposes interventions (a nudge, a stop, a changed call)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from rightcall.contracts.protocol import feedback
from rightcall.dispatching.bounded_output import Bounds, bound
from rightcall.dispatching.budgets import fingerprint
from rightcall.dispatching.result import rejected_result
from rightcall.dispatching.trace import Intervention
from rightcall.guard.turn import PastCall, Turn, content_text
from rightcall.types import Call, Tool

_INTENT = re.compile(
    r"\b(?:let me|let's|i(?:'|’)?ll|i will|i(?:'|’)?m going to|i am going to|i need to|i should|now i|next,? i|"
    r"first,? i|going to)\b",
    re.IGNORECASE,
)

_OFFER = re.compile(
    r"\b(?:if you|would you|should i|shall i|do you want|let me know|feel free)\b|\?\s*$", re.IGNORECASE
)

_SEARCHED_CHARS = 240


def announced(*, most: int = 3) -> GuardPolicy:
    """Return a policy that sends a nudge when a reply announces a call in its last sentence and makes none, unless the
    turn's choice is "none".

    - `most`: at most this many nudges of this policy since the last message of the user; a model that intends no call
      can answer then.
    """

    def policy(turn: Turn) -> Iterator[Intervention]:
        """Yield a nudge for a reply without calls whose last sentence announces one; nothing for the choice "none", or
        once `most` turns since the last message of the user got this nudge."""
        reply = turn.reply
        if reply is None or reply.attempts or turn.choice == "none" or turn.ever_told("announced") >= most:
            return
        name = _announced_tool(reply.content, turn)
        if name is not None:
            what = f"a call of {name}" if name else "a call"
            yield Intervention(
                policy="announced",
                action="nudge",
                reason=f"{what} was announced and not made",
                message=policy_message(
                    "announced",
                    f"You announced {what} but made none. Make the call now, or give your final answer.",
                    turn.ever_told("announced"),
                ),
            )

    return policy


def _announced_tool(text: str, turn: Turn) -> str | None:
    """Return the name of a tool if the last sentence of the text announces a call and the last 240 characters contain
    the name; "" for an announcement without a name that ends with a colon or dots; otherwise None. Offers and questions
    are no announcements."""
    last = text.rstrip()[-_SEARCHED_CHARS:]
    sentence = re.split(r"(?<=[.!?\n])\s+", last)[-1]
    if not _INTENT.search(sentence) or _OFFER.search(sentence):
        return None
    names = turn.tools.names if turn.tools else ()
    found = next((name for name in names if re.search(rf"\b{re.escape(name)}\b", last)), None)
    if found is not None:
        return found
    return "" if sentence.rstrip("*_` ").endswith((":", "...", "…")) else None


class Respond:
    """A policy that gives the model a tool to answer the user with, so that an answer is deliberate.

    A call of it alone ends the task, and its argument is the answer; next to other calls it is refused.

    - `name`: of the tool.
    """

    def __init__(self, name: str = "respond") -> None:
        self.tool = Tool(
            name=name,
            description="Give your final answer to the user. Call it alone, once everything else is done.",
            parameters={
                "type": "object",
                "properties": {"message": {"type": "string", "description": "What the user is to read."}},
                "required": ["message"],
            },
            read_only=True,
            run=_return_message,
        )

    def __call__(self, turn: Turn) -> Iterator[Intervention]:
        """Yield the interventions for the valid calls of the respond tool in the reply of this `turn`. Alone, each call
        yields one that ends the task with the call's `message` as the answer, and one that answers the call without a
        run. Next to calls of other tools, each is refused."""
        attempts = turn.reply.attempts if turn.reply else ()
        own = [at for at, call in enumerate(attempts) if call.name == self.tool.name and call.ok]
        if not own:
            return
        others = [call for call in attempts if call.name != self.tool.name]
        for at in own:
            if others:
                words = f"{self.tool.name} was not run: look at the results of the other calls, then call it alone."
                yield Intervention(
                    policy="respond",
                    action="refuse",
                    call=at,
                    reason="an answer beside other calls",
                    message=policy_message("respond", words, turn.told("respond")),
                )
                continue
            said = str(attempts[at].arguments.get("message", ""))
            yield Intervention(policy="respond", action="end", reason="the model gave its answer", message=said)
            yield Intervention(policy="respond", action="answer", call=at, reason="an answer is given", message="sent")


def _return_message(message: str) -> str:
    """Return the message unchanged: the function of the `respond` tool."""
    return message


def silence(*, most: int = 4) -> GuardPolicy:
    """Return a policy that sends a nudge after an empty reply (no call, no text), and stops the task after `most`
    nudges in a row."""

    def policy(turn: Turn) -> Iterator[Intervention]:
        """Yield a nudge for a reply without calls, text and `done` block; a stop if the last `most` turns got this
        nudge."""
        reply = turn.reply
        if reply is None or reply.attempts or reply.content.strip() or reply.done is not None:
            return
        again = turn.told("silence")
        yield Intervention(
            policy="silence",
            action="stop" if again >= most else "nudge",
            reason="the reply is empty" + (f", {again + 1} times in a row" if again else ""),
            message=policy_message("silence", "Your reply was empty. Make a call, or give your answer.", again),
        )

    return policy


LONGEST_NUDGE = 1_200

MOST_NUDGES = 5  # turns in a row with the same nudge; a loop must end even if the model ignores it

GuardPolicy = Callable[[Turn], Iterable[Intervention]]

_URGENCIES = ("{words}", "You were told before. {words}", "STOP. {words} Do just that, and nothing else.")


def policy_message(policy: str, words: str, again: int = 0) -> str:
    """Return the text `words` as the message of a policy, with a mark by which it is recognized in a history.

    `again`, the number of turns in a row with the same message before, makes it more urgent. It is shortened to
    `LONGEST_NUDGE`."""
    said = f"[guard: {policy}] {_URGENCIES[min(again, len(_URGENCIES) - 1)].replace('{words}', words)}"
    return said if len(said) <= LONGEST_NUDGE else said[: LONGEST_NUDGE - 3] + "..."


def nudge_or_stop(policy: str, turn: Turn, reason: str, words: str, *, tier: int | None = None) -> Intervention:
    """Return the intervention of `policy` for something that the reply lacks: a nudge with `words` as its message, or a
    stop if the policy has intervened in each of the last `MOST_NUDGES` turns.

    `reason` is for the operator. The message becomes more urgent with each turn in a row, unless `tier` (0 to 2) is
    given."""
    again = turn.told(policy)
    tier = again if tier is None else tier
    if again < MOST_NUDGES:
        return Intervention(policy=policy, action="nudge", reason=reason, message=policy_message(policy, words, tier))
    why = f"{reason}, {again + 1} times in a row"
    return Intervention(
        policy=policy, action="stop", reason=why, message=policy_message(policy, f"The task was stopped: {why}.")
    )


def malformed_budget(most: int = 5) -> GuardPolicy:
    """Return a policy that stops the task at a reply that makes only invalid calls, if in each of the `most` turns
    before it all calls were refused too."""

    def policy(turn: Turn) -> Iterator[Intervention]:
        """Yield a stop for a reply with calls of which none is `ok`, after `most` turns in a row with refused calls
        only."""
        attempts = turn.reply.attempts if turn.reply else ()
        if attempts and not any(call.ok for call in attempts) and turn.streak("refused") >= most:
            yield _stop_task("malformed_budget", f"{most + 1} turns in a row made only calls that cannot run")

    return policy


def failing_budget(most: int = 6) -> GuardPolicy:
    """Return a policy that stops the task when in each of the last `most` turns all calls failed, and the reply calls
    only tools that failed there."""

    def policy(turn: Turn) -> Iterator[Intervention]:
        """Yield a stop if all calls of the last `most` turns failed, and all calls of the reply go to tools called
        there."""
        attempts = turn.reply.attempts if turn.reply else ()
        if not attempts or turn.streak("failed") < most:
            return
        failed = {call.name for past in turn.past[-most:] for call in past.calls}
        if all(call.name in failed for call in attempts):
            yield _stop_task("failing_budget", f"the calls of {most} turns in a row failed")

    return policy


def turn_budget(most: int = 30) -> GuardPolicy:
    """Return a policy that stops the task when the model has had `most` turns since the last message of the user, and
    its reply makes calls again. A reply without calls may still end the task."""

    def policy(turn: Turn) -> Iterator[Intervention]:
        """Yield a stop for a reply with calls after `most` turns since the last message of the user."""
        if turn.reply is not None and turn.reply.attempts and len(turn.past) >= most:
            yield _stop_task("turn_budget", f"{most} turns were not enough")

    return policy


def _stop_task(policy: str, reason: str) -> Intervention:
    """Return the intervention of this policy that stops the task for this reason."""
    return Intervention(
        policy=policy, action="stop", reason=reason, message=policy_message(policy, f"The task was stopped: {reason}.")
    )


_UNKNOWN = ("unknown_tool", "not_authorised", "invalid_name")
_LISTED = 24


def unknown_tool() -> GuardPolicy:
    """Return a policy that refuses each call whose tool does not exist or may not be called. The message lists the
    first 24 allowed tools."""

    def policy(turn: Turn) -> Iterator[Intervention]:
        """Yield a refusal for each call with a blocking problem about its tool's name."""
        for at, call in enumerate(turn.reply.attempts if turn.reply else ()):
            found = [problem for problem in call.problems if problem.blocking and problem.code in _UNKNOWN]
            if found:
                names = _allowed_names(turn)
                listed = ", ".join(names[:_LISTED]) + (" ..." if len(names) > _LISTED else "")
                words = f"{found[0].message}. The tools you can call: {listed or 'none'}."
                if turn.told("unknown_tool"):
                    words += " Call one of these by its exact name, or answer without a call."
                yield Intervention(
                    policy="unknown_tool",
                    action="refuse",
                    call=at,
                    reason=f"there is no tool {call.name!r:.60}",
                    message=policy_message("unknown_tool", words, turn.told("unknown_tool")),
                )

    return policy


def _allowed_names(turn: Turn) -> Sequence[str]:
    """Return the names of the turn's tools that its `choice` allows: all for "auto" and "required", else only the named
    tool; empty for "none", for a name that is no tool, and without tools."""
    names = turn.tools.names if turn.tools else ()
    return names if turn.choice in ("auto", "required") else [name for name in names if name == turn.choice]


def problems() -> GuardPolicy:
    """Return a policy that refuses every call that is not `ok`; the message states its problems. From the second turn
    in a row on, it also lists the arguments of the tool."""

    def policy(turn: Turn) -> Iterator[Intervention]:
        """Yield a refusal for each call of the reply that is not `ok`, with its problems as the message."""
        again = turn.told("problems")
        for at, call in enumerate(turn.reply.attempts if turn.reply else ()):
            if not call.ok:
                yield Intervention(
                    policy="problems",
                    action="refuse",
                    call=at,
                    reason=f"the call of {call.name!r:.60} is wrong: {_blocking_codes(call)}",
                    message=policy_message(
                        "problems",
                        rejected_result(call, call.problems).reason + _repeated_fault_hint(turn, call, again),
                    ),
                )

    return policy


def _blocking_codes(call: Call) -> str:
    """Return the codes of the blocking problems, joined; "cut off" for an incomplete call without any."""
    return ", ".join(dict.fromkeys([problem.code for problem in call.problems if problem.blocking])) or "cut off"


def _repeated_fault_hint(turn: Turn, call: Call, again: int) -> str:
    """Return text to append to a refusal: the names of the tool's arguments, and for `again` above 1 the advice to do
    without the call. "" if `again` (the turns in a row before this one that were refused too) is 0, or the tool is
    unknown."""
    tool = turn.tools.get(call.name) if turn.tools else None
    if not again or tool is None:
        return ""
    known = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", [])
    listed = ", ".join([f"{name} (required)" if name in required else name for name in list(known)[:_LISTED]])
    words = f". The arguments of {call.name}: {listed or 'none'}"
    return words + (". If you cannot make this call, do without it and say so" if again > 1 else "")


def near_calls(*, most: int = 4) -> GuardPolicy:
    """Return a policy that sends a nudge for a reply without calls whose text is almost a call: otherwise a loop would
    end as if it were the answer.

    - `most`: at most this many nudges of this policy since the last message of the user.
    """

    def policy(turn: Turn) -> Iterator[Intervention]:
        """Yield a nudge for a reply without calls that has the problem `looks_like_a_call`; nothing once `most` turns
        since the last message of the user got this nudge."""
        reply = turn.reply
        if reply is None or reply.attempts or turn.ever_told("near_call") >= most:
            return
        if any(problem.code == "looks_like_a_call" for problem in reply.problems):
            yield Intervention(
                policy="near_call",
                action="nudge",
                reason="the text looks like a call and is none",
                message=policy_message("near_call", feedback(reply), turn.ever_told("near_call")),
            )

    return policy


_LONGEST_CYCLE = 4
_MAX_ECHO = 400  # characters of an earlier result that are shown again


def repeated(
    *, tell: int = 1, answer: int = 2, refuse: int = 3, stop: int = 5, window: int = 24, exempt: Sequence[str] = ()
) -> GuardPolicy:
    """Return a policy against repeated calls. It counts the earlier calls since the last message of the user with the
    same tool, arguments and result, or how often a sequence of 2 to 4 calls was repeated that the call begins again.
    The count starts anew after a different result, or after another call that succeeded and whose tool is not
    `read_only`. The second of two equal calls in one reply is always refused.

    - `tell`, `answer`, `refuse`, `stop`: from which count on a note is added to the result, the earlier result is
      returned without a run, the call is refused, or the task is stopped. A number above `window` disables one. A call
      that succeeded and whose tool is not `read_only` is refused instead of the first two.
    - `window`: how many earlier calls are compared.
    - `exempt`: tools that may be called again and again, such as those that wait for something.
    """
    levels = ((stop, "stop"), (refuse, "refuse"), (answer, "answer"), (tell, "tell"))

    def policy(turn: Turn) -> Iterator[Intervention]:
        """Yield an intervention for each valid call that repeats earlier ones often enough. A second equal call in the
        same reply is refused, and so is, instead of a note or an answer, one that succeeded before and may have changed
        something. After a call of this reply that may change something, earlier results do not count. Without an
        earlier success to answer with, a note or, for a repeated sequence, a refusal takes its place."""
        past = [call for call in turn.calls[-window:] if _is_countable(call)]
        now: set[str] = set()
        changed = False  # by this reply, before the call
        for at, call in enumerate(turn.reply.attempts if turn.reply else ()):
            asks_anew, changed = changed, changed or (call.ok and _may_change_state(turn, call.name))
            if call.name in exempt or not call.ok:
                continue
            if len(now) == len(now := now | {fingerprint(call)}):
                yield _repetition_intervention("twice", at, call, 1, "")
                continue
            same = [] if asks_anew else _equal_calls_with_same_result(turn, past, call)
            cycles = _count_cycles(past, call)
            count = max(len(same), cycles)
            action = next((action for least, action in levels if count >= least), None)
            known = next((each.result for each in reversed(same) if each.outcome == "ok"), None)
            if action in ("tell", "answer") and known is not None and same and _may_change_state(turn, call.name):
                action = "hold"
            if action == "answer" and known is None:
                action = "refuse" if cycles >= answer else "tell"
            if action is not None:
                yield _repetition_intervention(action, at, call, count, known or "")

    return policy


def _is_countable(call: PastCall) -> bool:
    """Return whether an earlier call counts as a repetition: it ran (with success or not), or the policy `repeated`
    answered it. False for an open call and for one that another policy refused: it may be sent again."""
    return call.outcome in ("ok", "failed") or call.told == "repeated"


def _equal_calls_with_same_result(turn: Turn, past: Sequence[PastCall], call: Call) -> list[PastCall]:
    """Return the calls in `past` that are equal to `call` and had the same result, oldest first. The search goes back
    from the latest call. It ends at a successful call of another kind that may have changed something, and at an equal
    call with a different result: then the equal calls after that one are returned, or none if there is just one."""
    mark = fingerprint(call)
    found: list[PastCall] = []
    for each in reversed(past):
        if each.name == call.name and each.fingerprint == mark:
            if each.outcome != "refused" and any(_has_other_result(each, other) for other in found):
                return found[::-1] if len(found) > 1 else []
            found.append(each)
        elif each.outcome == "ok" and _may_change_state(turn, each.name):
            break
    return found[::-1]


def _has_other_result(one: PastCall, other: PastCall) -> bool:
    """Return whether `other`, an equal call, ran and had a different result than `one`; False if `other` was
    refused."""
    return other.outcome != "refused" and one.result != other.result


def _may_change_state(turn: Turn, name: str) -> bool:
    """Return whether a call of the tool `name` may change something: True if the tool is not read-only or is
    unknown."""
    tool = turn.tools.get(name) if turn.tools else None
    return tool is None or not tool.read_only


def _count_cycles(past: Sequence[PastCall], call: Call) -> int:
    """Return how many times in a row the latest 2 to 4 calls with their results occurred at the end of `past`, if
    `call` would begin the same sequence again; the largest number over these lengths. 0 if nothing was repeated, or if
    all calls and results of the sequence are equal."""
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


def _repetition_intervention(action: str, at: int, call: Call, count: int, known: str) -> Intervention:
    """Return the intervention of the policy `repeated` for the call at index `at`, which was made `count` times before;
    a stop belongs to no call. `action` is that of the intervention, or "hold" (it succeeded and may have changed
    something) or "twice" (a second time in one reply), which are refusals with their own message. `known` is the
    earlier result."""
    times = f"{count} times before" if count > 1 else "before"
    reason = f"{call.name:.60} was called with the same arguments {times}, to the same end"
    words = {
        "tell": f"You made this very call {times} and got the same. Use what it gave, or try something else.",
        "twice": "Your reply contains this call twice; it was made once.",
        "hold": f"This call was not made a second time: it went well before and may have changed something. It gave: "
        f"{known[:_MAX_ECHO]}{'...' if len(known) > _MAX_ECHO else ''}. Go on from there.",
        "refuse": f"This call was not run: you made it {times} and got the same. Do something else, or answer now.",
        "stop": f"The task was stopped: the same call of {call.name:.60} came again and again.",
        "answer": "",
    }[action]
    message = known if action == "answer" else policy_message("repeated", words)
    call_at = None if action == "stop" else at
    done = "refuse" if action in ("hold", "twice") else action
    return Intervention("repeated", done, reason, message, call_at)  # type: ignore[arg-type]


_ONE_CALL = "One call at a time: look at the first result, then send this again."


def tool_choice() -> GuardPolicy:
    """Return a policy that enforces the turn's `choice`: with "none" refuse every call, with a tool's name refuse the
    calls of all other tools, with "auto" do nothing.

    Unless the choice is "none" or "auto", a reply without any call gets a nudge. If the last five turns all got an
    intervention of this policy, a reply without an allowed call stops the task."""

    def policy(turn: Turn) -> Iterator[Intervention]:
        """Yield a refusal for each call that the choice does not allow; for a reply without calls where one is
        required, a nudge; for a reply without an allowed call in too many turns in a row, a stop."""
        if turn.reply is None or turn.choice == "auto":
            return
        attempts = turn.reply.attempts
        if turn.choice == "none":
            words = "No tool may be called now. Answer in words."
        elif turn.choice == "required":
            words = "A call is required now. Make one, and nothing else."
        else:
            words = f"Only {turn.choice} may be called now. Make that call, and nothing else."
        wrong = [
            at
            for at, call in enumerate(attempts)
            if turn.choice == "none" or turn.choice not in ("required", call.name)
        ]
        again = turn.told("tool_choice")
        for at in wrong:
            yield Intervention(
                policy="tool_choice",
                action="refuse",
                call=at,
                reason=f"tool_choice is {turn.choice!r:.60}, and {attempts[at].name!r:.60} was called",
                message=policy_message("tool_choice", words, again),
            )
        is_missing = not attempts and turn.choice != "none"
        if is_missing or (wrong and len(wrong) == len(attempts) and again >= MOST_NUDGES):
            what = "nothing was called" if is_missing else "no allowed tool was called"
            yield nudge_or_stop("tool_choice", turn, f"tool_choice is {turn.choice!r:.60}, and {what}", words)

    return policy


def one_at_a_time() -> GuardPolicy:
    """Return a policy that refuses every valid call after the first valid one of a reply, unless the turn is
    `parallel`. The first one counts also if another policy refuses it."""

    def policy(turn: Turn) -> Iterator[Intervention]:
        """Yield a refusal for each valid call after the first valid one; nothing if the turn is `parallel`."""
        if turn.reply is None or turn.parallel:
            return
        able = [at for at, call in enumerate(turn.reply.attempts) if call.ok]
        for at in able[1:]:
            yield Intervention(
                policy="one_at_a_time",
                action="refuse",
                call=at,
                reason="several calls at once, where one is allowed",
                message=policy_message("one_at_a_time", _ONE_CALL, turn.told("one_at_a_time")),
            )

    return policy


def oversized_results(*, chars: int = 16_000) -> GuardPolicy:
    """Return a policy that shortens tool results of the history to their head and tail before the history is sent.

    - `chars`: results with more characters are shortened.
    """
    bounds = Bounds(string_chars=chars, total_bytes=4 * chars)

    def policy(turn: Turn) -> Iterator[Intervention]:
        """Yield a cut with the shortened text for each tool result that is too long; nothing for a turn that has a
        reply already."""
        if turn.reply is not None:
            return
        for at, message in enumerate(turn.messages):
            if message.get("role") != "tool":
                continue
            said = content_text(message.get("content"))
            if len(said) > chars:
                short = bound(said, bounds).text
                hint = policy_message("oversized_results", "the result was cut here; ask for less, or for a part of it")
                yield Intervention(
                    policy="oversized_results",
                    action="cut",
                    at=at,
                    reason=f"a result of {len(said):,} characters, where {chars:,} are allowed",
                    message=f"{short}\n{hint}",
                )

    return policy
