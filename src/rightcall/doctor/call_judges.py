"""Judges of calls: is there one, is it whole, does it fit its tool, and did the text keep it?"""

from __future__ import annotations

import json
import re
from typing import Any

from rightcall.doctor.judging import OK, ProbedCase, ProbeFinding, fault, model
from rightcall.doctor.questions import LONG_WORDS
from rightcall.doctor.seen_answer import SeenCall
from rightcall.guard.policies import announced
from rightcall.guard.turn import Turn
from rightcall.parsing.parser import parse
from rightcall.providers.sdk_view import text
from rightcall.repairs.whole_call import repair
from rightcall.tools.checks import check
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Reply

_NOT_PLAIN = re.compile(r"[^a-z0-9]+")
_MOJIBAKE = ("\ufffd", "Ã¶", "å\x8c", "ð\x9f")


def leaked(case: ProbedCase) -> Reply | None:
    """The text read as a model's own, if there is a call in it."""
    said = case.seen.text
    if not said.strip() or not case.question.tools:
        return None
    reply = parse(said, tools=list(case.question.tools))
    return reply if reply.attempts else None


def in_text(case: ProbedCase) -> ProbeFinding | None:
    """The call that stands in the text, where there is none beside it."""
    if case.seen.calls:
        return None
    reply = leaked(case)
    if reply is not None:
        return fault("call_as_text", f"the call stands in the text, in the format {reply.format}")
    if case.seen.reasoning and parse(case.seen.reasoning, tools=list(case.question.tools)).attempts:
        return fault("think_tags", "the call stands in the reasoning and nowhere else")
    return None


def no_call(case: ProbedCase) -> ProbeFinding:
    """There is none: is it the server's doing?"""
    found = in_text(case)
    if found is not None:
        return found
    said = case.seen.text.strip()
    if case.seen.is_cut:
        return model(f"no call within {case.question.max_tokens} tokens")
    if not said:
        return model("the model made no call and said nothing")
    slug = "announced_only" if _is_announced(said, case) else ""
    return model(f"the model made no call, and said: {said[:160]}", slug)


def _is_announced(said: str, case: ProbedCase) -> bool:
    tools = Toolset.of(list(case.question.tools))
    return any(True for _ in announced()(Turn((), tools, reply=parse(said, tools=tools))))


def made(case: ProbedCase) -> ProbeFinding:
    """Did calls come, and can a client read them?"""
    if not case.seen.calls:
        return no_call(case)
    for call in case.seen.calls:
        found = unreadable(call)
        if found is not None and case.seen.is_cut:
            return model(f"no whole call within {case.question.max_tokens} tokens")
        found = found or misnamed(call, case)
        if found is not None:
            return found
    return OK


def unreadable(call: SeenCall) -> ProbeFinding | None:
    """Why a client cannot read the arguments of this call."""
    given = call.arguments
    if given is None or given == "":
        return fault("empty_arguments", f"the arguments are {_said(given)}")
    if call.as_text and not isinstance(given, str):
        return fault("broken_arguments", f"the arguments are no text: {_said(given)}")
    value = call.value
    if isinstance(value, str) or (not call.as_text and isinstance(given, str)):
        what = "a text in a text" if call.as_text else "a text, and no object"
        return fault("broken_arguments", f"the arguments are {what}: {_said(given)}")
    if value is None and str(given).strip() == "null":
        return fault("empty_arguments", "the arguments are null")
    if not isinstance(value, dict):
        return _not_json(given)
    return None


def _not_json(given: Any) -> ProbeFinding:
    try:
        _, end = json.JSONDecoder().raw_decode(str(given).lstrip())
    except json.JSONDecodeError as error:
        if error.msg.startswith("Unterminated string"):
            return fault("cut_but_run", f"the arguments end in the middle of a text: {_said(given)}")
        return fault("broken_arguments", f"the arguments are no JSON: {_said(given)}")
    except (ValueError, RecursionError):
        return fault("broken_arguments", f"the arguments are no JSON: {_said(given)}")
    rest = str(given).lstrip()[end:].strip()
    if not rest:  # a number that JSON has no word for
        return fault("broken_arguments", f"the arguments are no JSON: {_said(given)}")
    slug = "bad_index" if rest.startswith("{") else "broken_arguments"
    return fault(slug, f"the arguments are more than one JSON value: {_said(given)}")


def is_cut(given: str) -> bool:
    """Is this JSON that only lacks its end?"""
    try:
        json.loads(given)
    except json.JSONDecodeError as error:
        return error.pos >= len(given.rstrip()) or error.msg.startswith("Unterminated string")
    except RecursionError:
        return False
    return False


def _plain(name: str) -> str:
    return _NOT_PLAIN.sub("", name.lower())


def misnamed(call: SeenCall, case: ProbedCase) -> ProbeFinding | None:
    """Why the call names none of the tools."""
    names = [tool.name for tool in case.question.tools]
    if call.name in names:
        return None
    plain = _plain(text(call.name))
    near = [name for name in names if _plain(name) in plain or (plain and plain in _plain(name))]
    says = f"the call names {_said(call.name)}, and the tools are {', '.join(names)}"
    return fault("wrong_names", says) if near or not plain else model(says, "wrong_names")


def _said(value: Any) -> str:
    """A value as JSON, not too long."""
    try:
        written = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        written = f"{value!r:.200}" if isinstance(value, str | int | float) else type(value).__name__
    return written if len(written) <= 160 else f"{written[:157]}..."


def fitting(case: ProbedCase) -> ProbeFinding:
    """Do the arguments, as a client reads them, fit the tool's schema?"""
    found = made(case)
    if found.verdict != "ok":
        return found
    tools = Toolset.of(list(case.question.tools)) or Toolset([])
    for call in case.seen.calls:
        found = _fits(call, tools)
        if found.verdict != "ok":
            return found
    return OK


def _fits(call: SeenCall, tools: Toolset) -> ProbeFinding:
    """What a server may have done to a value is what the schema can undo; all else the model wrote."""
    given = Call(text(call.name), call.value, "")
    problems = [each for each in check(given, tools) if each.blocking]
    if not problems:
        return OK
    first = problems[0]
    if first.code in ("missing", "unknown_argument"):
        return model(first.message, "wrong_parameters")
    if any(each.blocking for each in check(repair(given, tools), tools)):
        return model(first.message)
    is_encoded = any(_is_encoded(value) for value in call.value.values())
    return fault("double_encoded" if is_encoded else "wrong_types", first.message)


def _is_encoded(value: Any) -> bool:
    if not isinstance(value, str) or value.strip()[:1] not in ("{", "["):
        return False
    try:
        return isinstance(json.loads(value), dict | list)
    except (ValueError, RecursionError):
        return False


def kept_letters(case: ProbedCase) -> ProbeFinding:
    """Nested arguments whose letters came through."""
    found = fitting(case)
    if found.verdict == "ok":
        said = json.dumps([call.value for call in case.seen.calls], ensure_ascii=False)
        if any(wrong in said for wrong in _MOJIBAKE):
            return fault("broken_arguments", f"letters were lost: {said[:160]}")
    return found


def long_and_whole(case: ProbedCase) -> ProbeFinding:
    """A long argument that came whole."""
    found = fitting(case)
    if found.verdict != "ok":
        return found
    written = " ".join([text(call.value.get("content")) for call in case.seen.calls])
    if LONG_WORDS.split()[-1] not in written.split():
        return model("the model wrote another text than it was asked for")
    return OK


def both(case: ProbedCase) -> ProbeFinding:
    """Two calls in one answer, apart from each other."""
    found = made(case)
    if found.verdict != "ok":
        return found
    if len(case.seen.calls) < 2:
        return model("the model made one call")
    return OK


def without_arguments(case: ProbedCase) -> ProbeFinding:
    """A call of a tool that takes none."""
    return made(case)
