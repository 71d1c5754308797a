"""Judges of answers. A judge is a function of a `ProbedCase`, one question in one mode with its answer, and returns a
`ProbeFinding` with one of five verdicts:

    ok            the server did what it should
    fault         it did not; the class of failure names the deviation
    model         the model did not do what it was asked, so the answer shows nothing about the server
    not offered   the server reports, or shows, that it does not have the feature
    unreachable   there was no answer
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from rightcall.api_names import Api
from rightcall.doctor.questions import FILLER_WORDS, LONG_WORDS, MARK, ServerQuestion, Way
from rightcall.doctor.server_answers import ClientCall, RawAnswer, RuleViolation, StrictClientAnswer
from rightcall.guard.policies import announced
from rightcall.guard.turn import Turn
from rightcall.parsing.parser import parse
from rightcall.providers.sdk_view import text
from rightcall.repairs.whole_call import repair
from rightcall.tools.checks import check
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json, Reply

Verdict = Literal["ok", "fault", "model", "not offered", "unreachable"]
VERDICTS: tuple[Verdict, ...] = ("fault", "unreachable", "model", "not offered", "ok")  # the worst first


PATIENCE = 20.0  # seconds; some clients wait 65, and proxies in between often 30


class ProbeFinding(msgspec.Struct, frozen=True):
    """The finding of a judge: a verdict, a class of failure (`slug`) if there is one, and the reason (`says`)."""

    verdict: Verdict
    slug: str = ""
    says: str = ""


class ProbedCase(msgspec.Struct, frozen=True, kw_only=True):
    """One question, sent once, with its answer.

    - `api`, `way`: the dialect, and whether a stream was requested.
    - `question`, `body`: the question, and the body of its request.
    - `raw`, `answer`, `violations`: the bytes, what a strict client reads, and violations of the dialect's rules.
    - `others`: the other cases of the same round, by question and way.
    - `patience`: how many seconds of silence clients tolerate.
    """

    api: Api
    way: Way
    question: ServerQuestion
    body: Json
    raw: RawAnswer
    answer: StrictClientAnswer
    violations: tuple[RuleViolation, ...] = ()
    others: dict[tuple[str, Way], ProbedCase] = {}
    patience: float = PATIENCE

    def violations_of(self, *slugs: str) -> list[RuleViolation]:
        """Return the violations of these classes."""
        return [fault for fault in self.violations if fault.slug in slugs]


Judge = Callable[[ProbedCase], ProbeFinding]
OK = ProbeFinding("ok")


def server_fault(slug: str, says: str) -> ProbeFinding:
    """Return the finding that the server has a fault of this class."""
    return ProbeFinding("fault", slug, says)


def model_failure(says: str, slug: str = "") -> ProbeFinding:
    """Return the finding that the model failed, with a class of failure if it has one."""
    return ProbeFinding("model", slug, says)


_NOT_PLAIN = re.compile(r"[^a-z0-9]+")
_MOJIBAKE = ("\ufffd", "Ã¶", "å\x8c", "ð\x9f")


def parse_text_calls(case: ProbedCase) -> Reply | None:
    """Parse the text of an answer as raw model output. Return the reply; None if it has no call, or the question had no
    tools."""
    answered = case.answer.text
    if not answered.strip() or not case.question.tools:
        return None
    reply = parse(answered, tools=list(case.question.tools))
    return reply if reply.attempts else None


def find_call_in_text(case: ProbedCase) -> ProbeFinding | None:
    """Return the server's fault if an answer without calls has one in its text or, if not there, in its reasoning. None
    if there is none, or if the answer has calls."""
    if case.answer.calls:
        return None
    reply = parse_text_calls(case)
    if reply is not None:
        return server_fault("call_as_text", f"the call is in the text, in the format {reply.format}")
    if case.answer.reasoning and parse(case.answer.reasoning, tools=list(case.question.tools)).attempts:
        return server_fault("think_tags", "the call is only in the reasoning")
    return None


def explain_missing_call(case: ProbedCase) -> ProbeFinding:
    """Return the finding for an answer without calls: a fault of the server if a call is in its text or reasoning,
    otherwise a failure of the model, with the class `announced_only` if its text announces a call."""
    found = find_call_in_text(case)
    if found is not None:
        return found
    answered = case.answer.text.strip()
    if case.answer.is_cut:
        return model_failure(f"no call within {case.question.max_tokens} tokens")
    if not answered:
        return model_failure("the model made no call and wrote no text")
    slug = "announced_only" if _is_announced(answered, case) else ""
    return model_failure(f"the model made no call, and wrote: {answered[:160]}", slug)


def _is_announced(answered: str, case: ProbedCase) -> bool:
    """Return whether the text `answered` announces a call of one of the question's tools without making it."""
    tools = Toolset.of(list(case.question.tools))
    return any(True for _ in announced()(Turn((), tools, reply=parse(answered, tools=tools))))


def judge_calls(case: ProbedCase) -> ProbeFinding:
    """Return `OK` if the answer has calls, all of declared tools and with arguments that a client can parse, fitting
    the schema or not; otherwise the finding for the first that is not so, or for the missing call. Unreadable arguments
    of a truncated answer are a failure of the model."""
    if not case.answer.calls:
        return explain_missing_call(case)
    for call in case.answer.calls:
        found = find_unreadable_arguments(call)
        if found is not None and case.answer.is_cut:
            return model_failure(f"no whole call within {case.question.max_tokens} tokens")
        found = found or find_wrong_name(call, case)
        if found is not None:
            return found
    return OK


def find_unreadable_arguments(call: ClientCall) -> ProbeFinding | None:
    """Return the server's fault that keeps a client from parsing the arguments of a call as an object; None if it
    can."""
    given = call.arguments
    if given is None or given == "":
        return server_fault("empty_arguments", f"the arguments are {_brief_json(given)}")
    if call.as_text and not isinstance(given, str):
        return server_fault("broken_arguments", f"the arguments are not text: {_brief_json(given)}")
    value = call.value
    if isinstance(value, str) or (not call.as_text and isinstance(given, str)):
        what = "a text in a text" if call.as_text else "a text, not an object"
        return server_fault("broken_arguments", f"the arguments are {what}: {_brief_json(given)}")
    if value is None and str(given).strip() == "null":
        return server_fault("empty_arguments", "the arguments are null")
    if not isinstance(value, dict):
        return _classify_invalid_json(given)
    return None


def _classify_invalid_json(given: Any) -> ProbeFinding:
    """Return the server's fault for arguments that are not a JSON object: a text in them that does not end
    (`cut_but_run`), an object after the first value (`bad_index`), anything else (`broken_arguments`)."""
    try:
        _, end = json.JSONDecoder().raw_decode(str(given).lstrip())
    except json.JSONDecodeError as error:
        if error.msg.startswith("Unterminated string"):
            return server_fault("cut_but_run", f"the arguments end in the middle of a text: {_brief_json(given)}")
        return server_fault("broken_arguments", f"the arguments are no JSON: {_brief_json(given)}")
    except (ValueError, RecursionError):
        return server_fault("broken_arguments", f"the arguments are no JSON: {_brief_json(given)}")
    rest = str(given).lstrip()[end:].strip()
    if not rest:  # a number that JSON cannot represent, such as NaN
        return server_fault("broken_arguments", f"the arguments are no JSON: {_brief_json(given)}")
    slug = "bad_index" if rest.startswith("{") else "broken_arguments"
    return server_fault(slug, f"the arguments are more than one JSON value: {_brief_json(given)}")


def is_cut_json(given: str) -> bool:
    """Return whether a text is invalid JSON that only lacks its end."""
    try:
        json.loads(given)
    except json.JSONDecodeError as error:
        return error.pos >= len(given.rstrip()) or error.msg.startswith("Unterminated string")
    except RecursionError:
        return False
    return False


def _normalize(name: str) -> str:
    return _NOT_PLAIN.sub("", name.lower())


def find_wrong_name(call: ClientCall, case: ProbedCase) -> ProbeFinding | None:
    """Return a finding if a call names no declared tool: a fault of the server if the name is empty or resembles one,
    else a failure of the model. None if it names one."""
    names = [tool.name for tool in case.question.tools]
    if call.name in names:
        return None
    plain = _normalize(text(call.name))
    near = [name for name in names if _normalize(name) in plain or (plain and plain in _normalize(name))]
    says = f"the call names {_brief_json(call.name)}, and the tools are {', '.join(names)}"
    return server_fault("wrong_names", says) if near or not plain else model_failure(says, "wrong_names")


def _brief_json(value: Any) -> str:
    """Return a value as JSON of at most 160 characters; a value that JSON cannot represent by its `repr`, or by the
    name of its type."""
    try:
        written = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        written = f"{value!r:.200}" if isinstance(value, str | int | float) else type(value).__name__
    return written if len(written) <= 160 else f"{written[:157]}..."


def judge_schema_fit(case: ProbedCase) -> ProbeFinding:
    """Return `OK` if the answer has calls whose names and arguments fit the tools and their schemas, otherwise the
    finding for the first problem."""
    found = judge_calls(case)
    if found.verdict != "ok":
        return found
    tools = Toolset.of(list(case.question.tools)) or Toolset([])
    for call in case.answer.calls:
        found = _judge_arguments(call, tools)
        if found.verdict != "ok":
            return found
    return OK


def _judge_arguments(call: ClientCall, tools: Toolset) -> ProbeFinding:
    """Return the finding for the first problem in the arguments of a call; `OK` if they fit the schema.

    A missing or unknown argument is a failure of the model. Otherwise it is a fault of the server if a repair by the
    schema removes all problems, and a failure of the model if not.
    """
    given = Call(text(call.name), call.value, "")
    problems = [each for each in check(given, tools) if each.blocking]
    if not problems:
        return OK
    first = problems[0]
    if first.code in ("missing", "unknown_argument"):
        return model_failure(first.message, "wrong_parameters")
    if any(each.blocking for each in check(repair(given, tools), tools)):
        return model_failure(first.message)
    is_encoded = any(_is_encoded_json(value) for value in call.value.values())
    return server_fault("double_encoded" if is_encoded else "wrong_types", first.message)


def _is_encoded_json(value: Any) -> bool:
    """Return whether a value is a text that holds a JSON object or array."""
    if not isinstance(value, str) or value.strip()[:1] not in ("{", "["):
        return False
    try:
        return isinstance(json.loads(value), dict | list)
    except (ValueError, RecursionError):
        return False


def judge_unicode(case: ProbedCase) -> ProbeFinding:
    """Return `OK` if the answer has calls whose arguments fit the schema, otherwise the finding for the first problem;
    a fault of the server if they fit, but a character in them is damaged."""
    found = judge_schema_fit(case)
    if found.verdict == "ok":
        answered = json.dumps([call.value for call in case.answer.calls], ensure_ascii=False)
        if any(wrong in answered for wrong in _MOJIBAKE):
            return server_fault("broken_arguments", f"characters were damaged: {answered[:160]}")
    return found


def judge_long_argument(case: ProbedCase) -> ProbeFinding:
    """Return `OK` if the answer has calls whose arguments fit the schema, otherwise the finding for the first problem;
    a failure of the model if they fit, but the last word of the requested long text is missing."""
    found = judge_schema_fit(case)
    if found.verdict != "ok":
        return found
    written = " ".join([text(call.value.get("content")) for call in case.answer.calls])
    if LONG_WORDS.split()[-1] not in written.split():
        return model_failure("the model wrote another text than requested")
    return OK


def judge_two_calls(case: ProbedCase) -> ProbeFinding:
    """Return `OK` if the answer has at least two calls, all of declared tools and with arguments that a client can
    parse, otherwise the finding for the first problem; a failure of the model for only one call."""
    found = judge_calls(case)
    if found.verdict != "ok":
        return found
    if len(case.answer.calls) < 2:
        return model_failure("the model made one call")
    return OK


_THINK = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)
_UNREADABLE_CALLS = re.compile(r"it ends with tool_calls, but|`stop_reason` is tool_use, but")
_MIN_TOOL_TOKENS = 10  # the least tokens of one tool
_MIN_STREAMED_WORDS = 10  # a stream of more words should come in several pieces
_NO_CALL = ProbeFinding("not offered", "", "there is no call to look at")


def judge_acceptance(case: ProbedCase) -> ProbeFinding:
    """Return `OK`: a server that answers has accepted the request. Rejections never reach a judge of a probe."""
    return OK


def judge_text(case: ProbedCase) -> ProbeFinding:
    """Return `OK` if the answer has text, otherwise a failure of the model."""
    if not case.answer.text.strip():
        return model_failure("the answer has no text" + (", only reasoning" if case.answer.reasoning else ""))
    return OK


def judge_leak(case: ProbedCase) -> ProbeFinding:
    """Return a fault of the server if the text contains a call, also beside calls that were made, or if the only call
    is in the reasoning. Without any call, the finding is a failure of the model; otherwise `OK`."""
    found = find_call_in_text(case)
    if found is not None:
        return found
    reply = parse_text_calls(case)
    if reply is not None:
        return server_fault("call_as_text", f"a call is in the text too, in the format {reply.format}")
    return OK if case.answer.calls else explain_missing_call(case)


def _judge_rules(case: ProbedCase, *slugs: str) -> ProbeFinding:
    """Return a fault of the server for the violations of these classes that the answer has; without one `OK`, or "not
    offered" for an answer without calls."""
    faults = case.violations_of(*slugs)
    if faults:
        return server_fault(faults[0].slug, faults[0].says + _more_text(faults))
    return OK if case.answer.calls else _NO_CALL


def _more_text(faults: list[RuleViolation]) -> str:
    return f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""


def judge_ids(case: ProbedCase) -> ProbeFinding:
    """Return a fault of the server if an id of a call is missing, not unique or invalid; not offered without calls."""
    return _judge_rules(case, "bad_ids")


def judge_index(case: ProbedCase) -> ProbeFinding:
    """Return a fault of the server if the pieces of streamed calls cannot be joined; not offered without calls."""
    return _judge_rules(case, "bad_index")


def judge_finish(case: ProbedCase) -> ProbeFinding:
    """Return a fault of the server if the answer does not end once with the right reason. Calls that cannot be read do
    not count as a fault here. Without a fault, not offered for an answer without calls, else `OK`."""
    if case.answer.calls and case.answer.finish in ("tool_calls", "tool_use"):
        readable = [each for each in case.violations if not _UNREADABLE_CALLS.search(each.says)]
        case = msgspec.structs.replace(case, violations=tuple(readable))
    return _judge_rules(case, "wrong_finish")


def judge_events(case: ProbedCase) -> ProbeFinding:
    """Return a fault of the server if events or fields that strict clients require are missing or wrong, else `OK`."""
    faults = case.violations_of("bad_translation", "broken_arguments")
    return server_fault(faults[0].slug, faults[0].says + _more_text(faults)) if faults else OK


# -- tool_choice -------------------------------------------------------------------------------------------------------


def judge_required_call(case: ProbedCase) -> ProbeFinding:
    """Return a fault of the server if `tool_choice` asked for a call and there is none, or one of another declared tool
    than it names; for Ollama, which has no `tool_choice`, not offered. A call of an allowed tool that is only in the
    text or reasoning is a fault of its own class. Otherwise return the finding for the first call that cannot be read
    or names no tool, or `OK`."""
    if not case.answer.calls:
        found, reply = find_call_in_text(case), parse_text_calls(case)
        if found is not None and (reply is None or any(call.name in _allowed_tools(case) for call in reply.attempts)):
            return found
        if case.api == "ollama":
            return ProbeFinding("not offered", "tool_choice_ignored", "Ollama's dialect has no tool_choice")
        came = "there is no call" if reply is None else f"{text(reply.attempts[0].name)[:80]!r} was called, in the text"
        return server_fault("tool_choice_ignored", f"{case.question.choice} was requested, and {came}")
    named, declared = case.question.choice, [tool.name for tool in case.question.tools]
    other = [call for call in case.answer.calls if named != "required" and call.name != named and call.name in declared]
    if other and case.api == "ollama":
        return ProbeFinding("not offered", "tool_choice_ignored", "Ollama's dialect has no tool_choice")
    if other:
        return server_fault(
            "tool_choice_ignored", f"{named} was requested, and {text(other[0].name)[:80]!r} was called"
        )
    return judge_calls(case)


def _allowed_tools(case: ProbedCase) -> list[str]:
    """Return the names of the tools that `tool_choice` allows: all if it is required, otherwise the named one."""
    named = case.question.choice
    return [tool.name for tool in case.question.tools if named in ("required", tool.name)]


def judge_strict_tool(case: ProbedCase) -> ProbeFinding:
    """Return a fault of the server if the call of a strict tool is missing or its arguments do not fit the schema;
    otherwise `OK`. A call that cannot be read gets its own finding."""
    found = judge_required_call(case)
    if found.verdict != "ok":
        return found
    found = judge_schema_fit(case)
    if found.verdict == "ok":
        return found
    return server_fault("schema_kills_grammar", f"a strict schema was accepted but not enforced: {found.says}")


def judge_forbidden_call(case: ProbedCase) -> ProbeFinding:
    """Return a fault of the server for a call although `tool_choice` is "none"; for Ollama, which has no `tool_choice`,
    not offered. An empty answer is a failure of the model, any other is `OK`."""
    if case.answer.calls and case.api == "ollama":
        return ProbeFinding("not offered", "tool_choice_ignored", "Ollama's dialect has no tool_choice")
    if case.answer.calls:
        return server_fault(
            "tool_choice_ignored", f"none was requested, and {text(case.answer.calls[0].name)[:80]!r} was called"
        )
    if not case.answer.text.strip() and not case.answer.reasoning:
        return model_failure("the answer is empty")
    return OK


# -- histories and reasoning -------------------------------------------------------------------------------------------


def judge_history(case: ProbedCase) -> ProbeFinding:
    """Return `OK` if a history with a result is answered with text. A call that is only in the text or the reasoning is
    a fault of the server; a call that is made again, and an empty text, are failures of the model."""
    if case.answer.calls:
        return model_failure("the model called the tool again in place of an answer", "repeated_calls")
    found = find_call_in_text(case)
    return found if found is not None else judge_text(case)


def judge_reasoning(case: ProbedCase) -> ProbeFinding:
    """Return a fault of the server for think tags in the text, or for a call that is only in the reasoning; not offered
    for an answer without reasoning, otherwise `OK`."""
    if _THINK.search(case.answer.text):
        return server_fault("think_tags", "the tags of reasoning are in the text")
    found = find_call_in_text(case)
    if found is not None and found.slug == "think_tags":
        return found
    if not case.answer.reasoning:
        return ProbeFinding("not offered", "", "the answer has no reasoning")
    return OK


# -- truncation --------------------------------------------------------------------------------------------------------


def judge_truncation(case: ProbedCase) -> ProbeFinding:
    """Return a fault of the server if a truncated answer looks complete, or one that is marked as truncated has a call
    in its text. An answer that is not truncated is a failure of the model, any other is `OK`."""
    if case.answer.is_cut:
        found_in_text = find_call_in_text(case)
        return found_in_text if found_in_text is not None and found_in_text.slug == "call_as_text" else OK
    found = next(filter(None, map(_describe_truncation, case.answer.calls)), "")
    if not found and (case.answer.written_tokens or 0) >= case.question.max_tokens:
        found = "the limit was reached"
    if found:
        return server_fault("cut_but_run", f"{found}, and the answer ends with {case.answer.finish or 'no reason'}")
    return model_failure(f"the answer ended within {case.question.max_tokens} tokens")


def _describe_truncation(call: ClientCall) -> str:
    """Return a sentence about how a call of the requested long text is truncated: its arguments lack their end, or are
    closed in the middle of the text; "" if it is not."""
    value, given = call.value, call.arguments
    if isinstance(given, str) and given.lstrip().startswith("{") and value is None and is_cut_json(given):
        return "the call is cut in the middle"
    content = text(value.get("content")) if isinstance(value, dict) else ""
    words, wanted = content.split(), LONG_WORDS.split()
    is_half = 1 < len(words) < len(wanted) and words[:-1] == wanted[: len(words) - 1]
    return "the call is cut in the middle and closed" if is_half else ""


# -- counts ------------------------------------------------------------------------------------------------------------


def _prompt_tokens_of(case: ProbedCase, name: str) -> int | None:
    """Return the prompt tokens of the whole answer to the question `name`; None if it is missing, failed or has no
    count."""
    found = case.others.get((name, "whole"))
    return found.answer.prompt_tokens if found is not None and found.raw.is_ok else None


def judge_tool_tokens(case: ProbedCase) -> ProbeFinding:
    """Return a fault of the server if it drops the tools: no answer of this round has a call, and the prompt is not
    counted as longer with tools.

    Return `OK` if it is; not offered if the counts show nothing, but an answer has a call."""
    own, bare = case.answer.prompt_tokens, _prompt_tokens_of(case, "toolless")
    if own is not None and bare is not None and own >= bare + _MIN_TOOL_TOKENS:
        return ProbeFinding("ok", "", f"{bare} tokens without tools, {own} with one")
    is_conclusive = own is not None and bare is not None and _prompt_tokens_of(case, "filler") != own
    if not _has_any_call(case):
        counts = f"the prompt has {bare} tokens without tools and {own} with one, and " if is_conclusive else ""
        return server_fault("no_native_tools", f"{counts}no answer has a call: the tools are dropped")
    says = f": {bare} tokens without tools, {own} with one" if own is not None else ""
    return ProbeFinding("not offered", "", f"the token counts are inconclusive{says}")


def _has_any_call(case: ProbedCase) -> bool:
    """Return whether any answer of this round has a call, also one in its text."""
    asked = [other for other in case.others.values() if other.question.tools and other.raw.is_ok]
    return any(other.answer.calls or find_call_in_text(other) is not None for other in asked)


def judge_prompt_length(case: ProbedCase) -> ProbeFinding:
    """Return a fault of the server if it counts fewer tokens than three quarters of the words of a long prompt; not
    offered without counts, or if the same small count is given for a short prompt; otherwise `OK`."""
    own, plain = case.answer.prompt_tokens, _prompt_tokens_of(case, "plain")
    if own is None:
        return ProbeFinding("not offered", "", "the server counts no prompt tokens")
    if plain is not None and own == plain and own < FILLER_WORDS // 6:
        return ProbeFinding(
            "not offered", "", f"the token counts are inconclusive: {own} tokens, however long the prompt is"
        )
    if own < FILLER_WORDS * 0.75:
        return server_fault("context_cut", f"{FILLER_WORDS:,} words were sent, and {own:,} tokens were read")
    return ProbeFinding("ok", "", f"{own:,} tokens for {FILLER_WORDS:,} words")


def judge_prompt_refusal(case: ProbedCase) -> ProbeFinding:
    """Return `OK` for a rejected prompt: a server must reject one that is too long."""
    return ProbeFinding("ok", "", f"the context is smaller than {FILLER_WORDS:,} words, and the server reports it")


# -- constraints, time, streams ----------------------------------------------------------------------------------------


def judge_constraint(case: ProbedCase) -> ProbeFinding:
    """Return a fault of the server if the text of the answer is not the JSON that the requested schema requires; a
    failure of the model if the answer was truncated before; otherwise `OK`."""
    try:
        holds = json.loads(case.answer.text) == {"animal": MARK}
    except (ValueError, RecursionError):
        holds = False
    if holds:
        return OK
    if case.answer.is_cut:
        return model_failure("the answer was cut before it was complete")
    answered = case.answer.text.strip()[:120]
    return server_fault("schema_kills_grammar", f"a schema for the answer was accepted but not enforced: {answered!r}")


def judge_first_byte(case: ProbedCase) -> ProbeFinding:
    """Return a fault of the server if the first byte arrives after more than `patience` seconds, or if a streamed
    answer of more than `_MIN_STREAMED_WORDS` words that took over a second arrives in one piece; else `OK`."""
    first = f"first byte after {case.raw.first_byte:.2f} s, {case.raw.seconds:.2f} s in all"
    if case.raw.first_byte > case.patience:
        return server_fault("idle_stream", first)
    words = len(case.answer.text.split())
    if case.way == "streamed" and case.raw.pieces == 1 and words > _MIN_STREAMED_WORDS and case.raw.seconds > 1.0:
        return server_fault("idle_stream", f"the stream came in one piece at its end: {first}")
    return ProbeFinding("ok", "", first)


def judge_silence(case: ProbedCase) -> ProbeFinding:
    """Return a fault of the server if a stream has no data for longer than `patience` seconds, else `OK`."""
    says = f"at most {case.raw.silence:.2f} s without data"
    return server_fault("idle_stream", says) if case.raw.silence > case.patience else ProbeFinding("ok", "", says)


def judge_stream_equality(case: ProbedCase) -> ProbeFinding:
    """Return a fault of the server if the stream lacks calls or readable arguments that the whole answer to the same
    question has, or if the pieces of its calls cannot be joined; otherwise `OK`. Without calls in the whole answer,
    `OK` for a stream with calls, else not offered."""
    other = case.others.get((case.question.name, "whole"))
    if other is None or not other.raw.is_ok or not other.answer.calls:
        return OK if case.answer.calls else _NO_CALL
    if not case.answer.calls:
        found = find_call_in_text(case)
        says = found.says if found is not None else f"the text is {case.answer.text.strip()[:80]!r}"
        return server_fault(
            "lost_in_stream", f"whole, there are {len(other.answer.calls)} calls; streamed, none: {says}"
        )
    if pieces := case.violations_of("bad_index"):
        return server_fault("bad_index", f"the pieces of the calls cannot be joined: {pieces[0].says}")
    if len(case.answer.calls) < len(other.answer.calls):
        return server_fault(
            "lost_in_stream", f"{len(other.answer.calls)} calls whole, {len(case.answer.calls)} streamed"
        )
    for one, whole in zip(case.answer.calls, other.answer.calls, strict=False):
        if find_unreadable_arguments(whole) is None and (found := find_unreadable_arguments(one)) is not None:
            slug = "broken_arguments" if _begins_with_value(one.arguments, whole.value) else "lost_in_stream"
            return server_fault(slug, f"whole, the arguments are JSON; streamed: {found.says}")
    return OK


def _begins_with_value(given: object, value: object) -> bool:
    """Return whether a text begins with JSON of this value, so that none of the value is lost; False if it is not
    text."""
    try:
        return bool(json.JSONDecoder().raw_decode(text(given).lstrip())[0] == value)
    except (ValueError, RecursionError):
        return False
