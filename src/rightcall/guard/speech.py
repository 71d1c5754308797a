"""Replies without calls: an answer, an announcement of a call that never comes, or nothing at all."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rightcall.dispatching.trace import Intervention
from rightcall.guard.intervention import GuardPolicy, told
from rightcall.guard.turn import Turn
from rightcall.types import Tool

_INTENT = re.compile(
    r"\b(?:let me|let's|i(?:'|’)?ll|i will|i(?:'|’)?m going to|i am going to|i need to|i should|now i|next,? i|"
    r"first,? i|going to)\b",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"\b(?:if you|would you|should i|shall i|do you want|let me know|feel free)\b|\?\s*$", re.IGNORECASE
)
_LAST = 240


def announced(*, most: int = 3) -> GuardPolicy:
    """A reply that says it will call a tool, and calls none, is asked to do it.

    - `most`: how often in one task; a model that means no call says so then.
    """

    def policy(turn: Turn) -> Iterator[Intervention]:
        reply = turn.reply
        if reply is None or reply.attempts or turn.choice == "none" or turn.ever_told("announced") >= most:
            return
        name = _announced(reply.content, turn)
        if name is not None:
            what = f"a call of {name}" if name else "a call"
            yield Intervention(
                policy="announced",
                action="nudge",
                reason=f"{what} was announced and not made",
                message=told(
                    "announced",
                    f"You announced {what} but made none. Make the call now, or give your final answer.",
                    turn.ever_told("announced"),
                ),
            )

    return policy


def _announced(text: str, turn: Turn) -> str | None:
    """The tool that is announced, "" for one that is not named, None where nothing is."""
    last = text.rstrip()[-_LAST:]
    sentence = re.split(r"(?<=[.!?\n])\s+", last)[-1]
    if not _INTENT.search(sentence) or _OFFER.search(sentence):
        return None
    names = turn.tools.names if turn.tools else ()
    found = next((name for name in names if re.search(rf"\b{re.escape(name)}\b", last)), None)
    if found is not None:
        return found
    return "" if sentence.rstrip("*_` ").endswith((":", "...", "…")) else None


class Respond:
    """The policy that gives the model a tool to speak with, so that an answer is a choice and not a lapse. A call of it
    alone ends the task, and its argument is the answer; beside other calls it waits.

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
            run=_spoken,
        )

    def __call__(self, turn: Turn) -> Iterator[Intervention]:
        """What it says of this `turn`."""
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
                    message=told("respond", words, turn.told("respond")),
                )
                continue
            said = str(attempts[at].arguments.get("message", ""))
            yield Intervention(policy="respond", action="end", reason="the model gave its answer", message=said)
            yield Intervention(policy="respond", action="answer", call=at, reason="an answer is given", message="sent")


def _spoken(message: str) -> str:
    return message


def silence(*, most: int = 4) -> GuardPolicy:
    """A reply with neither text nor a call is asked again, and the task is stopped after so many in a row (`most`)."""

    def policy(turn: Turn) -> Iterator[Intervention]:
        reply = turn.reply
        if reply is None or reply.attempts or reply.content.strip() or reply.done is not None:
            return
        again = turn.told("silence")
        yield Intervention(
            policy="silence",
            action="stop" if again >= most else "nudge",
            reason="the reply is empty" + (f", {again + 1} times in a row" if again else ""),
            message=told("silence", "Your reply was empty. Make a call, or give your answer.", again),
        )

    return policy
