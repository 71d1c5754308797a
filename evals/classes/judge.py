"""Check each text: parsed with the named format and with `auto`, whole and in chunks, live and not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any, NamedTuple

import msgspec

from classes.case import KITS, CallData, Case, Expect, toolset
from classes.wire import Wire
from rightcall import Call, Ids, Parser, Reply, RightcallError, Toolset, dispatch_sync, parse, read, select
from rightcall.errors import NoToolCallFound
from rightcall.formats import FORMATS


class Fault(NamedTuple):
    """A deviation of one case; `how` is the mode in which the text was read."""

    case: Case
    how: str
    what: str


def find_fault(case: Case) -> Fault | None:
    """Return the first fault of a case, or None. An exception is a fault too."""
    try:
        return next(_faults(case), None)
    except Exception as error:  # noqa: BLE001 - it is reported as a fault of this case
        return Fault(case, "raised", f"{type(error).__name__}: {error}"[:300])


def _faults(case: Case) -> Iterator[Fault]:
    if case.by != "parse":
        check = {"read": _check_read, "dispatch": _check_dispatch, "select": _check_select}[case.by]
        what = check(case)
        if what:
            yield Fault(case, case.by, what)
        return
    named_reply = _parse_whole(case, case.format)
    if what := find_difference(named_reply, case.expect):
        yield Fault(case, "whole", what)
    yield from _check_chunks(case, case.format, named_reply)
    yield from _check_auto(case, named_reply)


# -- modes of parsing --------------------------------------------------------------------------------------------------


@cache
def _tools(key: str) -> Toolset | None:
    return Toolset.of(toolset(key)) if key else None


def _parse_whole(case: Case, format: str) -> Reply:
    options: Any = dict(case.options)
    return parse(case.text, format=format, tools=_tools(case.tools), ids=Ids.numbered("c"), **options)


def _feed_parser(case: Case, format: str, chunks: list[str], live: bool) -> Reply:
    options: Any = dict(case.options)
    finish = options.pop("finish", None)
    parser = Parser(format, tools=_tools(case.tools), ids=Ids.numbered("c"), live=live, **options)
    for chunk in chunks:
        parser.feed(chunk)
    parser.close(finish=finish)
    return parser.reply


def _check_chunks(case: Case, format: str, whole: Reply) -> Iterator[Fault]:
    """Check that the reply does not depend on chunk boundaries; live, that the same calls are runnable."""
    for how, chunks in (("by characters", list(case.text)), ("in pieces", _random_chunks(case.text))):
        for live in (False, True):
            cut = _feed_parser(case, format, chunks, live)
            if (what := _difference(whole, cut)) and not live:
                yield Fault(case, how, what)
            if live and (what := _compare_live(whole, cut)):
                yield Fault(case, f"{how}, live", what)


def _random_chunks(text: str) -> list[str]:
    dice, at, chunks = Random(f"{len(text)} {text[:40]}"), 0, []
    while at < len(text):
        step = dice.randint(1, 12)
        chunks.append(text[at : at + step])
        at += step
    return chunks


def _difference(whole: Reply, cut: Reply) -> str:
    for field in ("parts", "problems"):
        a, b = getattr(whole, field), getattr(cut, field)
        if a != b:
            return f"the {field} are {b!r}, not {a!r}"[:400]
    return ""


def _compare_live(whole: Reply, live: Reply) -> str:
    """Return how the final calls and texts differ. Repairs and previews may differ."""
    for field in ("content", "reasoning"):
        if getattr(whole, field) != getattr(live, field):
            return f"{field} is {getattr(live, field)!r}, not {getattr(whole, field)!r}"
    a, b = ([(call.name, call.arguments, call.json, call.ok) for call in reply.attempts] for reply in (whole, live))
    return "" if a == b else f"the calls are {b!r}, not {a!r}"


def _check_auto(case: Case, named: Reply) -> Iterator[Fault]:
    """Check the reply of `auto`, as far as the case asks for it and `auto` knows the format."""
    if not case.auto or not _auto_knows(case.format):
        return
    reply = _parse_whole(case, "auto")
    expect = case.expect if case.auto == "same" else _weaken(case.expect)
    if what := find_difference(reply, expect):
        yield Fault(case, "auto", f"as {reply.format}: {what}")
    if reply.format == case.format and not _are_all_allowed(_call_data(reply.calls), _call_data(named.calls)):
        yield Fault(case, "auto", "auto finds a call that the named format does not")
    yield from [Fault(case, f"auto, {f.how}", f.what) for f in _check_chunks(case, "auto", reply)]


@cache
def _auto_knows(format: str) -> bool:
    """Return whether `auto` parses a plain call of this format. Two formats that look alike are no fault."""
    kit = KITS["words"]
    calls: list[CallData] = [(kit.find, {kit.text: "owl", kit.count: 3}), (kit.find, {kit.text: "bat"})]
    text = Wire(format, FORMATS[format]).render_parts(calls, "words")
    return text is not None and _call_data(parse(text, tools=_tools("words")).calls) == calls


def _weaken(expect: Expect) -> Expect:
    allowed = [*(expect.calls or []), *(expect.among or [])]
    for one in expect.either:
        allowed += [*(one.calls or []), *(one.among or [])]
    if any(one.at_most is not None for one in expect.either):
        return expect
    silent = expect.has_problem or expect.refused or expect.codes
    reported = Expect(among=allowed, has_problem=True)
    return reported if silent else Expect(either=[reported, Expect(calls=expect.calls), *expect.either])


# -- expectations ------------------------------------------------------------------------------------------------------


def find_difference(reply: Reply, expect: Expect) -> str:
    """Return how a reply differs from the expectation, or an empty string."""
    for check in (_compare_calls, _compare_refusals, _compare_texts, _compare_repairs):
        if what := check(reply, expect):
            return what
    if expect.either:
        found = [find_difference(reply, one) for one in expect.either]
        return "" if "" in found else " / ".join(found)
    return ""


def _call_data(calls: tuple[Call, ...]) -> list[CallData]:
    return [(call.name, call.arguments) for call in calls]


def _is_same_call(a: CallData, b: CallData) -> bool:
    return a[0] == b[0] and json.dumps(a[1], sort_keys=True) == json.dumps(b[1], sort_keys=True)


def _are_all_allowed(calls: list[CallData], allowed: list[CallData]) -> bool:
    return all(any(_is_same_call(call, one) for one in allowed) for call in calls)


def _compare_calls(reply: Reply, expect: Expect) -> str:
    ran = _call_data(reply.calls)
    if expect.calls is not None:
        same = len(ran) == len(expect.calls) and all(
            _is_same_call(a, b) for a, b in zip(ran, expect.calls, strict=True)
        )
        if not same:
            return f"runnable: {ran!r} (problems: {_codes(reply)})"
    if expect.among is not None and not _are_all_allowed(ran, [tuple(call) for call in expect.among]):
        return f"runnable: {ran!r}"
    if expect.at_most is not None and len(ran) > expect.at_most:
        return f"{len(ran)} calls are runnable, more than were written"
    values = [str(value) for call in reply.calls for value in call.arguments.values()]
    swallowed = [mark for mark in expect.clean for value in values if mark in value]
    return f"an argument contains {swallowed[0]!r}" if swallowed else ""


def _codes(reply: Reply) -> list[str]:
    return sorted({problem.code for problem in reply.problems})


def _compare_refusals(reply: Reply, expect: Expect) -> str:
    codes = set(_codes(reply))
    if len(reply.refused) < expect.refused:
        return f"{len(reply.refused)} rejected, not {expect.refused} (problems: {sorted(codes)})"
    for choice in expect.codes:
        if not codes & set(choice.split("|")):
            return f"no problem {choice}, only {sorted(codes)}"
    if found := codes & set(expect.not_codes):
        return f"problem {sorted(found)}"
    if expect.has_problem and not reply.problems:
        return "no problem is reported"
    if expect.attempted and expect.attempted not in [call.name for call in reply.attempts]:
        return f"the name {expect.attempted} is lost: {[call.name for call in reply.attempts]}"
    return ""


def _compare_texts(reply: Reply, expect: Expect) -> str:
    for field in ("content", "reasoning"):
        expected_text = getattr(expect, field)
        if expected_text is not None and getattr(reply, field).strip() != expected_text:
            return f"{field} is {getattr(reply, field)!r}, not {expected_text!r}"
    visible_text = reply.content + reply.reasoning
    if missing := [text for text in expect.holds if text not in visible_text]:
        return f"{missing[0]!r} is missing from the text"
    everything = visible_text + "".join([json.dumps(call.arguments, ensure_ascii=False) for call in reply.calls])
    leaked = [text for text in expect.lacks if text in everything]
    return f"{leaked[0]!r} leaks: {everything!r}"[:300] if leaked else ""


def _compare_repairs(reply: Reply, expect: Expect) -> str:
    repairs = [repair for call in reply.attempts for repair in call.repairs]
    rules = {repair.rule for repair in repairs}
    if lacking := [rule for rule in expect.rules if rule not in rules]:
        return f"no repair {lacking[0]}, only {sorted(rules)}"
    report_text = " ".join(
        [f"{p.message} {p.path}" for p in reply.problems] + [f"{r.path} {r.before}" for r in repairs]
    )
    if unnamed := [word for word in expect.named if word not in report_text]:
        return f"{unnamed[0]!r} is named in no problem and no repair"
    messages = [problem.message for problem in reply.problems]
    if expect.one_message and not any(all(word in text for word in expect.one_message) for text in messages):
        return f"no message names all of {expect.one_message}: {messages}"[:300]
    return ""


# -- other readers -----------------------------------------------------------------------------------------------------


def _check_read(case: Case) -> str:
    return find_difference(read(json.loads(case.text), tools=_tools(case.tools)), case.expect)


def _check_select(case: Case) -> str:
    try:
        arguments = select(case.text, toolset(case.tools))
    except NoToolCallFound:
        return ""
    except RightcallError as error:
        return f"raises {type(error).__name__}, not NoToolCallFound"
    return f"gives {arguments!r}"


def _check_dispatch(case: Case) -> str:
    """Check the reply, and that `dispatch` runs exactly its runnable calls for each form of its argument."""
    tools = toolset(case.tools)
    reply = parse(case.text, format=case.format, tools=tools)
    if what := find_difference(reply, case.expect):
        return what
    for argument in (reply, reply.calls, reply.attempts):
        ran: list[CallData] = []
        dispatch_sync(argument, [_runnable(one, ran) for one in tools])
        if not all(_is_same_call(a, b) for a, b in zip(ran, case.expect.calls or [], strict=False)) or len(ran) != len(
            case.expect.calls or []
        ):
            return f"dispatch of {type(argument).__name__} ran {ran!r}"
    return ""


def _runnable(one: Any, ran: list[CallData]) -> Any:
    def run(**arguments: Any) -> str:
        ran.append((one.name, arguments))
        return "done"

    return msgspec.structs.replace(one, run=run)
