"""A reply held to the contract's protocol: what broke it, what the model is told, what goes into the history.

    reply = parse(text, tools=tools, format="contract")
    feedback(reply)   # "" when all is well, else the message that asks for better
    canonical(reply)  # the same reply as it should have been written

What is wrong with a call is in `reply.problems`. What only breaks the protocol is read off the reply's parts: text
outside all blocks stays text, and nothing that the model said is lost because of where it said it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rightcall.errors import CannotCarry
from rightcall.formats import known_formats
from rightcall.formats.contract_format import CONTRACT
from rightcall.formats.spec import Format, alternatives
from rightcall.parsing.rendering import render
from rightcall.problems import OF_SERVERS
from rightcall.types import Call, Part, Problem, Reply, Text

_PREVIEW = 120
_TAG_PREVIEW = 40
_LINES = 20
_LONGEST = 600
_FENCE_LINE = re.compile(r"(?m)^[ \t]*(?:```|~~~)[\w ]{0,32}$")
_TAG = re.compile(r"</?[A-Za-z_][^<>\n]{0,200}>?")
# Notes about a call that runs all the same, but should have been written otherwise.
_NEAR = "looks_like_a_call"  # told only where no call was made: then a loop would end as if it had its answer
_TOLD = ("bare_call", "rescued", "unclosed")


def violations(reply: Reply) -> list[Problem]:
    """How the `reply` breaks the protocol of its format, apart from what `reply.problems` says of its calls. Empty
    where its format has no protocol."""
    format = _protocol(reply)
    if format is None:
        return []
    found = [problem for text in stray(reply) for problem in _about_stray(text, format)]
    opens, closes = format.protocol.done if format.protocol else ("", "")
    if reply.done == "":
        found.append(Problem("empty_done", f"the {opens}{closes} block is empty", blocking=False))
    if reply.reasoning and not _has_block(reply):
        found.append(Problem("no_blocks", "the reply has no block in it: neither a call nor a text"))
    return found


def stray(reply: Reply) -> list[str]:
    """The texts that stood outside all blocks. Code fences alone are none: calls were taken out of them."""
    if _protocol(reply) is None:
        return []
    texts = [part.text for part in reply.parts if isinstance(part, Text) and not part.tag]
    return [text for text in texts if _FENCE_LINE.sub("", text).strip()]


def prose(reply: Reply) -> str:
    """What is meant for the user: the blocks that say so, or where there are none whatever text has its place."""
    texts = [part for part in reply.parts if isinstance(part, Text)]
    if _protocol(reply) is None:
        return reply.content
    answers = [part.text for part in texts if part.tag == "user_response"]
    return "\n\n".join(answers or [part.text for part in texts if part.tag])


def _has_block(reply: Reply) -> bool:
    return bool(reply.attempts or reply.done is not None or reply.problems or reply.content.strip())


def feedback(reply: Reply) -> str:
    """The message that tells the model what was wrong with its `reply` and how to write it; empty where nothing was.
    What went wrong at the server is none of it. Where calls are answered one by one, use `answers`."""
    format = _protocol(reply)
    refused, soft = _refused(reply), _broken_rules(reply) if format is not None else []
    for problem in violations(reply):
        (refused if problem.blocking else soft).append(problem.message)
    near = [] if reply.attempts else [problem.message for problem in reply.problems if problem.code == _NEAR]
    lists = {
        "Your last reply made no call, but:": near,
        "This of your last reply could not be used:": refused,
        "Your last reply broke the response protocol:": soft,
    }
    paragraphs = [_listed(head, lines) for head, lines in lists.items() if lines]
    return "\n\n".join([*paragraphs, _what_to_send(format, bool(refused))]) if paragraphs else ""


def _refused(reply: Reply) -> list[str]:
    return [_line(name, each) for name, each in _named(reply) if each.blocking and each.code not in OF_SERVERS]


def _broken_rules(reply: Reply) -> list[str]:
    return [_line(name, each) for name, each in _named(reply) if each.code in _TOLD]


def _named(reply: Reply) -> list[tuple[str, Problem]]:
    """Every problem in the order of the reply, with the tool whose call has it."""
    names = {problem: call.name for call in reply.attempts for problem in call.problems}
    return [(names.get(problem, ""), problem) for problem in reply.problems]


def _what_to_send(format: Format | None, has_refused: bool) -> str:
    if format is not None:
        return "Answer with blocks like these, and nothing outside them:\n" + skeleton(format)
    if has_refused:
        return "Send these calls again, corrected. The others need not be sent again."
    return "If it was an answer, leave it as it is and say so without calls."


def canonical(reply: Reply) -> str:
    """The `reply` as the protocol wants it, for the history of a model without a tool channel: its blocks in order,
    without stray text or reasoning, and without calls that could not be read."""
    kept = [part for part in reply.parts if _belongs(part, strict=_protocol(reply) is not None)]
    blocks = [block for part in kept if (block := _block(part))]
    if reply.done and CONTRACT.protocol is not None:
        blocks.append(reply.done.join(CONTRACT.protocol.done))
    return "\n\n".join(blocks)


def skeleton(format: Format = CONTRACT) -> str:
    """Every block of the protocol, with what goes into it."""
    holds = {"assistant_prose": "what you are doing, in a sentence", "user_response": "what the user is to read"}
    blocks = [_surround(format.call, "name({ key: value })")]
    for pair in format.content:
        blocks.append(_surround(pair, holds.get(str(alternatives(pair[0])[0]).strip("<> \n"), "text")))
    if format.protocol is not None:
        blocks.append("##DONE##".join(format.protocol.done))
    return "\n".join(blocks)


def _protocol(reply: Reply) -> Format | None:
    """The format of the reply, if it is one with a protocol."""
    format = known_formats().formats.get(reply.format)
    return format if format is not None and format.protocol is not None else None


def _about_stray(text: str, format: Format) -> Iterator[Problem]:
    opener = str(alternatives(format.call[0])[0]).strip()
    if opener in text:
        message = f"a {opener} block must hold one call, name({{ ... }}), not {_preview(text, _PREVIEW)}"
        yield Problem("no_call", message)
        return
    tags = list(dict.fromkeys([_preview(tag, _TAG_PREVIEW) for tag in _TAG.findall(text)]))
    if tags:
        yield Problem("unknown_tag", f"there is no block {', '.join(tags[:5])}", blocking=False)
    if _TAG.sub("", text).strip():
        yield Problem("stray_text", f"text outside all blocks was ignored: {_preview(text, _PREVIEW)}", blocking=False)


def _preview(text: str, most: int) -> str:
    text = text.strip()
    return repr(text if len(text) <= most else text[:most] + "...")


def _line(name: str, problem: Problem) -> str:
    said = problem.message if len(problem.message) <= _LONGEST else problem.message[:_LONGEST] + "..."
    return f"{name}: {said}" if name and name not in said else said


def _listed(head: str, lines: list[str]) -> str:
    lines = list(dict.fromkeys(lines))
    more = [f"- and {len(lines) - _LINES} more"] if len(lines) > _LINES else []
    return "\n".join([head, *(f"- {line}" for line in lines[:_LINES]), *more])


def _belongs(part: Part, *, strict: bool) -> bool:
    if isinstance(part, Call):
        return part.complete
    return isinstance(part, Text) and bool(part.tag or not strict) and bool(part.text.strip())


def _block(part: Part) -> str:
    """One block. Text that holds tags of the protocol itself is written so that they are none."""
    tries: list[Part] = [part]
    if isinstance(part, Text):
        tries.append(Text(part.text.replace("<", "&lt;"), part.tag))
    for one in tries:
        try:
            return render([one], format=CONTRACT).strip()
        except CannotCarry:
            continue
    return ""


def _surround(pair: tuple[str | tuple[str, ...], str | tuple[str, ...]], inside: str) -> str:
    opens, closes = alternatives(pair[0])[0], alternatives(pair[1])[0]
    return f"{opens}{inside}{closes}".strip()
