"""Judges of answers: ids, index, finish, order, tool_choice, histories, reasoning, cuts, counts, constraints."""

from __future__ import annotations

import json
import re

import msgspec

from rightcall.doctor.call_judges import fitting, in_text, is_cut, leaked, made, no_call, unreadable
from rightcall.doctor.judging import OK, ProbedCase, ProbeFinding, fault, model
from rightcall.doctor.questions import FILLER_WORDS, LONG_WORDS, MARK
from rightcall.doctor.seen_answer import SeenCall
from rightcall.doctor.wire_faults import WireFault
from rightcall.providers.sdk_view import text

_THINK = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)
_UNREAD = re.compile(r"it ends with tool_calls, but|`stop_reason` is tool_use, but")
_LEAST_OF_A_TOOL = 10  # tokens that one tool has at least
_HELD = 10  # words of a text that came in one piece at its end
_NO_CALL = ProbeFinding("not offered", "", "there is no call to look at")


def accepted(case: ProbedCase) -> ProbeFinding:
    """The server took the request; no more is asked."""
    return OK


def spoken(case: ProbedCase) -> ProbeFinding:
    """An answer without tools that says something."""
    if not case.seen.text.strip():
        return model("the answer says nothing" + (", but thinks" if case.seen.reasoning else ""))
    return OK


def kept_out_of_text(case: ProbedCase) -> ProbeFinding:
    """No call is left in the text."""
    found = in_text(case)
    if found is not None:
        return found
    reply = leaked(case)
    if reply is not None:
        return fault("call_as_text", f"a call stands in the text too, in the format {reply.format}")
    return OK if case.seen.calls else no_call(case)


def _with_calls(case: ProbedCase, *slugs: str) -> ProbeFinding:
    """What the wire says of calls, where there are any."""
    faults = case.of(*slugs)
    if faults:
        return fault(faults[0].slug, faults[0].says + _more(faults))
    return OK if case.seen.calls else _NO_CALL


def _more(faults: list[WireFault]) -> str:
    return f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""


def identified(case: ProbedCase) -> ProbeFinding:
    """Every call has an id of its own. Gemini's and Ollama's calls need none."""
    return _with_calls(case, "bad_ids")


def indexed(case: ProbedCase) -> ProbeFinding:
    """Streamed calls can be put together."""
    return _with_calls(case, "bad_index")


def finished(case: ProbedCase) -> ProbeFinding:
    """One end, with the reason that the content has. That calls cannot be read is told elsewhere."""
    if case.seen.calls and case.seen.finish in ("tool_calls", "tool_use"):
        readable = [each for each in case.wire if not _UNREAD.search(each.says)]
        case = msgspec.structs.replace(case, wire=tuple(readable))
    return _with_calls(case, "wrong_finish")


def in_order(case: ProbedCase) -> ProbeFinding:
    """The events and fields that the dialect's strict clients want."""
    faults = case.of("bad_translation", "broken_arguments")
    return fault(faults[0].slug, faults[0].says + _more(faults)) if faults else OK


# -- tool_choice -------------------------------------------------------------------------------------------------------


def forced(case: ProbedCase) -> ProbeFinding:
    """A required call came, of the named tool if one was named."""
    if not case.seen.calls:
        found, reply = in_text(case), leaked(case)
        if found is not None and (reply is None or any(call.name in _wanted(case) for call in reply.attempts)):
            return found
        if case.api == "ollama":
            return ProbeFinding("not offered", "tool_choice_ignored", "Ollama's dialect has no tool_choice")
        came = "no call came" if reply is None else f"{text(reply.attempts[0].name)[:80]!r} was called, in the text"
        return fault("tool_choice_ignored", f"{case.question.choice} was asked for, and {came}")
    named, declared = case.question.choice, [tool.name for tool in case.question.tools]
    other = [call for call in case.seen.calls if named != "required" and call.name != named and call.name in declared]
    if other and case.api == "ollama":
        return ProbeFinding("not offered", "tool_choice_ignored", "Ollama's dialect has no tool_choice")
    if other:
        return fault("tool_choice_ignored", f"{named} was asked for, and {text(other[0].name)[:80]!r} was called")
    return made(case)


def _wanted(case: ProbedCase) -> list[str]:
    """The tools that a forced call may be of."""
    named = case.question.choice
    return [tool.name for tool in case.question.tools if named in ("required", tool.name)]


def strict(case: ProbedCase) -> ProbeFinding:
    """Arguments of a strict tool fit its schema, which is the server's to see to."""
    found = forced(case)
    if found.verdict != "ok":
        return found
    found = fitting(case)
    if found.verdict == "ok":
        return found
    return fault("schema_kills_grammar", f"a strict schema was taken and not held: {found.says}")


def uncalled(case: ProbedCase) -> ProbeFinding:
    """No call came where none was allowed."""
    if case.seen.calls and case.api == "ollama":
        return ProbeFinding("not offered", "tool_choice_ignored", "Ollama's dialect has no tool_choice")
    if case.seen.calls:
        return fault(
            "tool_choice_ignored", f"none was asked for, and {text(case.seen.calls[0].name)[:80]!r} was called"
        )
    if not case.seen.text.strip() and not case.seen.reasoning:
        return model("the answer is empty")
    return OK


# -- histories and reasoning -------------------------------------------------------------------------------------------


def answered(case: ProbedCase) -> ProbeFinding:
    """A history with a result was read, and something was said."""
    if case.seen.calls:
        return model("the model called the tool again in place of an answer", "repeated_calls")
    found = in_text(case)
    return found if found is not None else spoken(case)


def thought_apart(case: ProbedCase) -> ProbeFinding:
    """Reasoning stands in a field of its own, and takes no call with it."""
    if _THINK.search(case.seen.text):
        return fault("think_tags", "the tags of reasoning stand in the text")
    found = in_text(case)
    if found is not None and found.slug == "think_tags":
        return found
    if not case.seen.reasoning:
        return ProbeFinding("not offered", "", "no reasoning came")
    return OK


# -- cuts --------------------------------------------------------------------------------------------------------------


def cut_and_said(case: ProbedCase) -> ProbeFinding:
    """An answer that ran into its limit says so, and has no call that looks whole."""
    for call in case.seen.calls:
        found = _half(call)
        if found and not case.seen.is_cut:
            return fault("cut_but_run", f"{found}, and the answer ends with {case.seen.finish or 'no reason'}")
    if case.seen.is_cut:
        found_in_text = in_text(case)
        return found_in_text if found_in_text is not None and found_in_text.slug == "call_as_text" else OK
    if case.seen.written_tokens is not None and case.seen.written_tokens >= case.question.max_tokens:
        return fault(
            "cut_but_run", f"the limit was reached, and the answer ends with {case.seen.finish or 'no reason'}"
        )
    return model(f"the answer was over within {case.question.max_tokens} tokens")


def _half(call: SeenCall) -> str:
    """How this call is less than what was asked for; empty where it is not cut."""
    value, given = call.value, call.arguments
    if isinstance(given, str) and given.lstrip().startswith("{") and value is None and is_cut(given):
        return "the call is cut in the middle"
    content = text(value.get("content")) if isinstance(value, dict) else ""
    words, wanted = content.split(), LONG_WORDS.split()
    is_half = 1 < len(words) < len(wanted) and words[:-1] == wanted[: len(words) - 1]
    return "the call is cut in the middle and closed" if is_half else ""


# -- counts ------------------------------------------------------------------------------------------------------------


def _prompt(case: ProbedCase, name: str) -> int | None:
    found = case.others.get((name, "whole"))
    return found.seen.prompt_tokens if found is not None and found.raw.is_ok else None


def counted(case: ProbedCase) -> ProbeFinding:
    """The tools are in the prompt: it has more tokens with them than without. Where the counts do not tell, a server
    that brings no call in any way, not even a required one, has none."""
    own, bare = case.seen.prompt_tokens, _prompt(case, "toolless")
    if own is not None and bare is not None and own >= bare + _LEAST_OF_A_TOOL:
        return ProbeFinding("ok", "", f"{bare} tokens without tools, {own} with one")
    told = own is not None and bare is not None and _prompt(case, "filler") != own
    if not _any_call(case):
        counts = f"the prompt has {bare} tokens without tools and {own} with one, and " if told else ""
        return fault("no_native_tools", f"{counts}no call came in any way: the tools are dropped")
    says = f": {bare} tokens without tools, {own} with one" if own is not None else ""
    return ProbeFinding("not offered", "", f"the counts do not tell{says}")


def _any_call(case: ProbedCase) -> bool:
    """Did a call come, or stand in the text, of those that were asked for?"""
    asked = [other for other in case.others.values() if other.question.tools and other.raw.is_ok]
    return any(other.seen.calls or in_text(other) is not None for other in asked)


def whole_prompt(case: ProbedCase) -> ProbeFinding:
    """A long prompt is counted whole."""
    own, plain = case.seen.prompt_tokens, _prompt(case, "plain")
    if own is None:
        return ProbeFinding("not offered", "", "the server counts no prompt tokens")
    if plain is not None and own == plain and own < FILLER_WORDS // 6:
        return ProbeFinding("not offered", "", f"the counts do not tell: {own} tokens, however long the prompt is")
    if own < FILLER_WORDS * 0.75:
        return fault("context_cut", f"{FILLER_WORDS:,} words were sent, and {own:,} tokens were read")
    return ProbeFinding("ok", "", f"{own:,} tokens for {FILLER_WORDS:,} words")


def window_told(case: ProbedCase) -> ProbeFinding:
    """A prompt that is too long is refused in words, which is right."""
    return ProbeFinding("ok", "", f"the window is smaller than {FILLER_WORDS:,} words, and the server says so")


# -- constraints, time, ways -------------------------------------------------------------------------------------------


def constrained(case: ProbedCase) -> ProbeFinding:
    """A schema for the answer holds, whatever the model would say."""
    try:
        holds = json.loads(case.seen.text) == {"animal": MARK}
    except (ValueError, RecursionError):
        holds = False
    if holds:
        return OK
    if case.seen.is_cut:
        return model("the answer was cut before it was whole")
    said = case.seen.text.strip()[:120]
    return fault("schema_kills_grammar", f"a schema for the answer was taken and not held: {said!r}")


def prompt_to_speak(case: ProbedCase) -> ProbeFinding:
    """The first byte comes soon, and before the last."""
    first = f"first byte after {case.raw.first_byte:.2f} s, {case.raw.seconds:.2f} s in all"
    if case.raw.first_byte > case.patience:
        return fault("idle_stream", first)
    words = len(case.seen.text.split())
    if case.way == "streamed" and case.raw.pieces == 1 and words > _HELD and case.raw.seconds > 1.0:
        return fault("idle_stream", f"the stream came in one piece at its end: {first}")
    return ProbeFinding("ok", "", first)


def never_silent(case: ProbedCase) -> ProbeFinding:
    """Something comes all the time, also while a call is made."""
    says = f"at most {case.raw.silence:.2f} s without a sign of life"
    return fault("idle_stream", says) if case.raw.silence > case.patience else ProbeFinding("ok", "", says)


def same_both_ways(case: ProbedCase) -> ProbeFinding:
    """Streamed, the answer holds the calls that it holds whole."""
    other = case.others.get((case.question.name, "whole"))
    if other is None or not other.raw.is_ok or not other.seen.calls:
        return OK if case.seen.calls else _NO_CALL
    if not case.seen.calls:
        found = in_text(case)
        says = found.says if found is not None else f"it says {case.seen.text.strip()[:80]!r}"
        return fault("lost_in_stream", f"whole, there are {len(other.seen.calls)} calls; streamed, none: {says}")
    if pieces := case.of("bad_index"):
        return fault("bad_index", f"the calls cannot be put together: {pieces[0].says}")
    if len(case.seen.calls) < len(other.seen.calls):
        return fault("lost_in_stream", f"{len(other.seen.calls)} calls whole, {len(case.seen.calls)} streamed")
    for one, whole in zip(case.seen.calls, other.seen.calls, strict=False):
        if unreadable(whole) is None and (found := unreadable(one)) is not None:
            slug = "broken_arguments" if _begins_with(one.arguments, whole.value) else "lost_in_stream"
            return fault(slug, f"whole, the arguments are JSON; streamed: {found.says}")
    return OK


def _begins_with(given: object, value: object) -> bool:
    """Is all of the value there, and more behind it? Then nothing is lost that a reader must have."""
    try:
        return bool(json.JSONDecoder().raw_decode(text(given).lstrip())[0] == value)
    except (ValueError, RecursionError):
        return False
