"""The judge: each text read by name and by `auto`, whole and in pieces, live and not, held against what is expected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any, NamedTuple

import msgspec

from classes.case import KITS, Case, Expect, Made, toolset
from classes.wire import Wire
from rightcall import Call, Ids, Parser, Reply, RightcallError, Toolset, dispatch_sync, parse, read, select
from rightcall.errors import NoToolCallFound
from rightcall.formats import FORMATS


class Fault(NamedTuple):
    """What went wrong with one case; `how` is the way of reading."""

    case: Case
    how: str
    what: str


def judge(case: Case) -> Fault | None:
    """The first fault of a case, or None. Whatever is raised is a fault too."""
    try:
        return next(_faults(case), None)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported as a fault of this case
        return Fault(case, "raised", f"{type(error).__name__}: {error}"[:300])


def _faults(case: Case) -> Iterator[Fault]:
    if case.by != "parse":
        how = {"read": _read, "dispatch": _dispatch, "select": _select}[case.by]
        what = how(case)
        if what:
            yield Fault(case, case.by, what)
        return
    named = _whole(case, case.format)
    if what := differs(named, case.expect):
        yield Fault(case, "whole", what)
    yield from _pieces(case, case.format, named)
    yield from _auto(case, named)


# -- ways of reading ---------------------------------------------------------------------------------------------------


@cache
def _tools(key: str) -> Toolset | None:
    return Toolset.of(toolset(key)) if key else None


def _whole(case: Case, format: str) -> Reply:
    options: Any = dict(case.options)
    return parse(case.text, format=format, tools=_tools(case.tools), ids=Ids.numbered("c"), **options)


def _fed(case: Case, format: str, chunks: list[str], live: bool) -> Reply:
    options: Any = dict(case.options)
    finish = options.pop("finish", None)
    parser = Parser(format, tools=_tools(case.tools), ids=Ids.numbered("c"), live=live, **options)
    for chunk in chunks:
        parser.feed(chunk)
    parser.close(finish=finish)
    return parser.reply


def _pieces(case: Case, format: str, whole: Reply) -> Iterator[Fault]:
    """The reply is the same one character at a time and in random pieces; live, the same calls may run."""
    for how, chunks in (("by characters", list(case.text)), ("in pieces", _random(case.text))):
        for live in (False, True):
            cut = _fed(case, format, chunks, live)
            if (what := _difference(whole, cut)) and not live:
                yield Fault(case, how, what)
            if live and (what := _said(whole, cut)):
                yield Fault(case, f"{how}, live", what)


def _random(text: str) -> list[str]:
    dice, at, found = Random(f"{len(text)} {text[:40]}"), 0, []
    while at < len(text):
        step = dice.randint(1, 12)
        found.append(text[at : at + step])
        at += step
    return found


def _difference(whole: Reply, cut: Reply) -> str:
    for field in ("parts", "problems"):
        a, b = getattr(whole, field), getattr(cut, field)
        if a != b:
            return f"the {field} are {b!r}, not {a!r}"[:400]
    return ""


def _said(whole: Reply, live: Reply) -> str:
    """How the settled calls and texts differ; receipts and previews may."""
    for field in ("content", "reasoning"):
        if getattr(whole, field) != getattr(live, field):
            return f"{field} is {getattr(live, field)!r}, not {getattr(whole, field)!r}"
    a, b = ([(call.name, call.arguments, call.json, call.ok) for call in reply.attempts] for reply in (whole, live))
    return "" if a == b else f"the calls are {b!r}, not {a!r}"


def _auto(case: Case, named: Reply) -> Iterator[Fault]:
    """Nothing else runs and nothing is silent; in full where the case asks for it and `auto` knows the format."""
    if not case.auto or not _auto_knows(case.format):
        return
    found = _whole(case, "auto")
    expect = case.expect if case.auto == "same" else _weakened(case.expect)
    if what := differs(found, expect):
        yield Fault(case, "auto", f"as {found.format}: {what}")
    if found.format == case.format and not _among(_made(found.calls), _made(named.calls)):
        yield Fault(case, "auto", "auto finds a call that the named format does not")
    yield from [Fault(case, f"auto, {f.how}", f.what) for f in _pieces(case, "auto", found)]


@cache
def _auto_knows(format: str) -> bool:
    """Does `auto` read a plain call of this format? Two wires that look alike are no fault."""
    kit = KITS["words"]
    calls: list[Made] = [(kit.find, {kit.text: "owl", kit.count: 3}), (kit.find, {kit.text: "bat"})]
    text = Wire(format, FORMATS[format]).written(calls, "words")
    return text is not None and _made(parse(text, tools=_tools("words")).calls) == calls


def _weakened(expect: Expect) -> Expect:
    allowed = [*(expect.calls or []), *(expect.among or [])]
    for one in expect.either:
        allowed += [*(one.calls or []), *(one.among or [])]
    if any(one.at_most is not None for one in expect.either):
        return expect
    silent = expect.told or expect.refused or expect.codes
    told = Expect(among=allowed, told=True)
    return told if silent else Expect(either=[told, Expect(calls=expect.calls), *expect.either])


# -- what must hold ----------------------------------------------------------------------------------------------------


def differs(reply: Reply, expect: Expect) -> str:
    """How a reply differs from what is expected; empty if it does not."""
    for check in (_calls_differ, _refusals_differ, _texts_differ, _receipts_differ):
        if what := check(reply, expect):
            return what
    if expect.either:
        found = [differs(reply, one) for one in expect.either]
        return "" if "" in found else " / ".join(found)
    return ""


def _made(calls: tuple[Call, ...]) -> list[Made]:
    return [(call.name, call.arguments) for call in calls]


def _same(a: Made, b: Made) -> bool:
    return a[0] == b[0] and json.dumps(a[1], sort_keys=True) == json.dumps(b[1], sort_keys=True)


def _among(calls: list[Made], allowed: list[Made]) -> bool:
    return all(any(_same(call, one) for one in allowed) for call in calls)


def _calls_differ(reply: Reply, expect: Expect) -> str:
    ran = _made(reply.calls)
    if expect.calls is not None:
        same = len(ran) == len(expect.calls) and all(_same(a, b) for a, b in zip(ran, expect.calls, strict=True))
        if not same:
            return f"may run: {ran!r} (problems: {_codes(reply)})"
    if expect.among is not None and not _among(ran, [tuple(call) for call in expect.among]):
        return f"may run: {ran!r}"
    if expect.at_most is not None and len(ran) > expect.at_most:
        return f"{len(ran)} may run, which is more than were written"
    values = [str(value) for call in reply.calls for value in call.arguments.values()]
    swallowed = [mark for mark in expect.clean for value in values if mark in value]
    return f"an argument holds {swallowed[0]!r}" if swallowed else ""


def _codes(reply: Reply) -> list[str]:
    return sorted({problem.code for problem in reply.problems})


def _refusals_differ(reply: Reply, expect: Expect) -> str:
    codes = set(_codes(reply))
    if len(reply.refused) < expect.refused:
        return f"{len(reply.refused)} refused, not {expect.refused} (problems: {sorted(codes)})"
    for choice in expect.codes:
        if not codes & set(choice.split("|")):
            return f"no problem {choice}, only {sorted(codes)}"
    if found := codes & set(expect.not_codes):
        return f"problem {sorted(found)}"
    if expect.told and not reply.problems:
        return "silent"
    if expect.attempted and expect.attempted not in [call.name for call in reply.attempts]:
        return f"the name {expect.attempted} is lost: {[call.name for call in reply.attempts]}"
    return ""


def _texts_differ(reply: Reply, expect: Expect) -> str:
    for field in ("content", "reasoning"):
        wanted = getattr(expect, field)
        if wanted is not None and getattr(reply, field).strip() != wanted:
            return f"{field} is {getattr(reply, field)!r}, not {wanted!r}"
    said = reply.content + reply.reasoning
    if gone := [text for text in expect.holds if text not in said]:
        return f"{gone[0]!r} is gone from the text"
    everything = said + "".join([json.dumps(call.arguments, ensure_ascii=False) for call in reply.calls])
    leaked = [text for text in expect.lacks if text in everything]
    return f"{leaked[0]!r} leaks: {everything!r}"[:300] if leaked else ""


def _receipts_differ(reply: Reply, expect: Expect) -> str:
    repairs = [repair for call in reply.attempts for repair in call.repairs]
    rules = {repair.rule for repair in repairs}
    if lacking := [rule for rule in expect.rules if rule not in rules]:
        return f"no receipt {lacking[0]}, only {sorted(rules)}"
    told = " ".join([f"{p.message} {p.path}" for p in reply.problems] + [f"{r.path} {r.before}" for r in repairs])
    if unnamed := [word for word in expect.named if word not in told]:
        return f"{unnamed[0]!r} is named nowhere"
    messages = [problem.message for problem in reply.problems]
    if expect.one_message and not any(all(word in text for word in expect.one_message) for text in messages):
        return f"no message names all of {expect.one_message}: {messages}"[:300]
    return ""


# -- other readers -----------------------------------------------------------------------------------------------------


def _read(case: Case) -> str:
    return differs(read(json.loads(case.text), tools=_tools(case.tools)), case.expect)


def _select(case: Case) -> str:
    try:
        found = select(case.text, toolset(case.tools))
    except NoToolCallFound:
        return ""
    except RightcallError as error:
        return f"raises {type(error).__name__}, not NoToolCallFound"
    return f"gives {found!r}"


def _dispatch(case: Case) -> str:
    """The reply as expected, and both ways of dispatching it run just its calls."""
    tools = toolset(case.tools)
    reply = parse(case.text, format=case.format, tools=tools)
    if what := differs(reply, case.expect):
        return what
    for given in (reply, reply.calls, reply.attempts):
        ran: list[Made] = []
        dispatch_sync(given, [_runnable(one, ran) for one in tools])
        if not all(_same(a, b) for a, b in zip(ran, case.expect.calls or [], strict=False)) or len(ran) != len(
            case.expect.calls or []
        ):
            return f"dispatch of {type(given).__name__} ran {ran!r}"
    return ""


def _runnable(one: Any, ran: list[Made]) -> Any:
    def run(**arguments: Any) -> str:
        ran.append((one.name, arguments))
        return "done"

    return msgspec.structs.replace(one, run=run)
