"""A name, then JSON arguments:  f[ARGS]{"x": 1}   functions.f:0<|tool_call_argument_begin|>{"x": 1}"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from rightcall.formats.spec import Format, NameThenJson, marker_alternatives
from rightcall.parsing.bodies.body_reader import Around, BodyReader, WholeBlock
from rightcall.parsing.bodies.trailing_text import ANOTHER_OBJECT, ARGUMENTS, HALF_A_KEY, what_stands_behind
from rightcall.parsing.buffer import Broken, Capture, Cut, LostJsonEnd, NotACall, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.markers import (
    NAME,
    RUN,
    Holes,
    Pat,
    Probe,
    alt,
    blanks,
    literal,
    lookahead,
    seq,
    templates,
)
from rightcall.repairs.envelope_repair import LooseCall, read_loose_arguments
from rightcall.repairs.loose_json import FENCE_LABEL
from rightcall.repairs.tool_meant import find_name, resolve_tool_name, tool_in_id, tool_of_call
from rightcall.strict_json import Undecodable, decode, is_deep, scan_unique
from rightcall.types import Repair

_B = r"[ \t\r\n]*+"
_BLANK_RUN = re.compile(_B).match
_OBJECT_IN_STRING = re.compile(r'"(?:\s|\\[nrt])*+\{').match
_COMMENT_SIGNS = frozenset("/#")
_COMMENTED = re.compile(r"/\*|//|#").search
_NAMES = re.compile(r"[\w$][\w.\-$]*+").findall
_NAME_THEN_OBJECT = Probe(seq(NAME, blanks(), lookahead(literal("{"))))
# A fence with an info string: one without may as well be the end of another fence.
_LABELLED_FENCE = Probe(seq(literal("```"), Pat(FENCE_LABEL, f"(?:{FENCE_LABEL})?+", sure=RUN), literal("\n")))
_ODD_BEHIND = frozenset(',"{}])')  # arguments: brackets too many, another object, or a part that was lost
_FOREIGN_ID = re.compile(r"(?:call_|chatcmpl-tool-)[\w\-]++").fullmatch  # of another API, which names no tool
_NO_ARGUMENTS = "no arguments follow the name of the tool; send a JSON object with them"
_NO_MARKER = "what stands between the name of the tool and its arguments is not as it must be; send the call again"


class NameThenJsonReader(BodyReader):
    def __init__(self, body: NameThenJson, format: Format, around: Around) -> None:
        ends = templates(format.call[1])
        self.body = body
        self.open = Holes(body.open) if any(marker_alternatives(body.open)) else None
        closes = templates(body.close)
        self.close = Probe(alt(*closes)) if closes else None
        close, end = _any_of(closes) + _B if closes else "", _any_of(ends)
        # What opens a call, and what closes a block: whole, with the blanks behind it, and before nothing odd.
        self._opens = re.compile(rf"(?:{self.open.probe.pat.whole}){_B}" if self.open else "(?!)").match
        self._block_end = re.compile(rf"(?>{_B}{close}{end})(?![,\"{{}}\])])").match
        self._open_ended = not (closes or ends)  # what follows the arguments decides whether they are all
        # What stands before a name says nothing by itself.
        self._labels = {re.split(r"\{|<", text)[0].strip() for text in marker_alternatives(body.open)} - {""}
        self._id_holes = re.findall(r"\{(\w+)\}", body.id)
        # An id as clients give it back, `functions_f_0`, which the model then imitates (exo#2281).
        imitated = re.sub(r"[^\w{}\-]", "_", body.id).replace("{name}", "(.+)").replace("{index}", "([0-9]{1,9})")
        self._imitated_id = re.compile(imitated or "(?!)").fullmatch
        self._said = self._groups(body)
        self.begins = Probe(alt(*templates(body.open))) if self.open else Probe.never()

    def quick(self, p: CallBuilder, start: int, bare: bool) -> WholeBlock | None:
        """The call of a block and its end, if all of it is there and as usual."""
        buf = p.buf
        pos = start if buf[start : start + 1] > " " else _BLANK_RUN(buf, start).end()  # type: ignore[union-attr]
        opener = self._opens(buf, pos)
        if opener is None or opener.lastindex is None:
            return None
        named, id, groups = self._said[opener.lastindex]
        name = opener[named]
        if name in self._labels or name.isdigit() or (self.body.id and not id and not p.is_declared(name)):
            return None
        begin = opener.end()
        try:
            value, end = scan_unique(buf, begin)
        except (StopIteration, ValueError, RecursionError):
            return None
        last = self._block_end(buf, end)
        if last is None or type(value) is not dict or is_deep(value, buf, begin, end, p.limits.depth):
            return None
        over = last.end()
        goes_on = HALF_A_KEY.at(buf, over, p.ended) if self._open_ended else False
        if goes_on:
            return None
        made = pos, end, name, buf[begin:end], value, id and id % opener.group(*groups)
        return [made], over, goes_on is False

    def is_over(self, p: CallBuilder, end: int) -> bool:
        end = _BLANK_RUN(p.buf, end).end()  # type: ignore[union-attr]
        if end == len(p.buf):
            return p.ended
        return p.buf[end] not in _ODD_BEHIND and HALF_A_KEY.at(p.buf, end, p.ended) is False

    def read_loose_calls(self, p: CallBuilder, text: str, closed: bool) -> list[LooseCall]:
        """A call whose arguments are not valid JSON, read loosely."""
        if p.call is None:
            return []
        start = p.text.arguments - p.text.start
        return read_loose_arguments(text, start, p.call.name, tools=p.tools, depth=p.limits.depth, closed=closed)

    def read(self, p: CallBuilder, *, bare: bool) -> Steps[None]:
        if self.open is None:
            raise NotACall
        p.begin_text()
        found = yield from p.test(self.open.probe)
        cut = p.ended and self.open.probe.is_begun(p.buf, p.pos)
        if found is None:
            yield from self._odd(p, bare, cut)
            return
        named, id, groups = self._said[found.lastindex or 0]
        name = found[named]
        if name in self._labels and not p.is_declared(name):
            raise Broken("invalid_name", "the call has no tool name; send the name of a tool with its arguments")
        if found.group().endswith(name):  # nothing stands between the name and the arguments
            size = found.end() - found.start()
            yield from self._name_alone(p, name, size, cut)
        else:
            p.take_match(found)
        id = id and id % found.group(*groups)
        is_counter = self._is_counter(p, name)
        is_foreign_id = self.body.id and not id and p.tools is not None and _FOREIGN_ID(name) and not _declared(p, name)
        if is_counter or is_foreign_id:
            char = yield from p.peek()
            if is_counter and not char:
                raise Cut
            if is_counter or char == "{":
                yield from _nameless(p, self.close, "" if is_counter else name)
                return
        repairs: tuple[Repair, ...] = ()
        imitated = self._imitated_id(name) if not id and p.tools is not None and not p.is_declared(name) else None
        if imitated is not None and p.policy(name) != "off" and (tool := tool_in_id(imitated[1], imitated[2], p.tools)):
            repairs = (Repair("namespace", "schema", "", name, tool),)
            name, id = tool, self.body.id.replace("{name}", tool).replace("{index}", imitated[2])
        p.begin(name, id, repairs)
        yield from read_arguments_of(p, self.close)

    def _is_counter(self, p: CallBuilder, name: str) -> bool:
        """Is this the number of the call, and its name was left out? Where numbers stand behind names it can be."""
        return "index" in self._id_holes and name.isdigit() and not p.is_declared(name)

    def _name_alone(self, p: CallBuilder, name: str, size: int, cut: bool) -> Steps[None]:
        """A name with nothing but the arguments behind it, or what else begins with a word."""
        rest = p.buf[p.pos :] if cut else ""
        p.advance(size)
        char = yield from p.peek()
        if char == "{":
            return
        if cut or not char:
            self._cut(p, rest or name)
        known = _declared(p, name)
        if not known:
            raise NotACall
        p.begin(known)
        raise Broken("invalid_json", _NO_ARGUMENTS)

    def _odd(self, p: CallBuilder, bare: bool, cut: bool) -> Steps[None]:
        """What stands behind the call's marker does not begin as it must."""
        if cut:
            self._cut(p, p.buf[p.pos :])
        char = yield from p.peek()
        if char == "{" and not bare:
            yield from _nameless(p, self.close)
            return
        found = yield from p.test(_NAME_THEN_OBJECT)
        if found is None or bare:
            raise NotACall
        p.take_match(found)
        p.begin(re.sub(r":\d+\Z", "", found.group().strip()))
        raise Broken("invalid_json", _NO_MARKER)

    def _cut(self, p: CallBuilder, text: str) -> NoReturn:
        """The text ended before the arguments: what is known of the call's name stays known."""
        names = _NAMES(text)
        known = [name for each in names if (name := _declared(p, each))]
        first = (
            names[:1] if p.tools is None and str(marker_alternatives(self.body.open)[0]).startswith("{name}") else []
        )
        p.take_all()
        p.begin_arguments()
        if known or first:
            p.begin((known or first)[-1])
        raise Cut

    def read_choice(self, p: CallBuilder, name: str) -> Steps[None]:
        """The request named the tool: all the model had to write are its arguments."""
        p.begin_text()
        p.begin(name)
        yield from read_arguments_of(p, None)

    def _groups(self, body: NameThenJson) -> dict[int, tuple[int, str, list[int]]]:
        """Of each opener, by its last group: the group of the name, the id as a text to be filled, and the groups that
        fill it."""
        found = {}
        for last, holes in (self.open.groups if self.open else {}).items():
            group = dict(holes)
            is_made = bool(body.id) and all(hole in group for hole in self._id_holes)
            wanted = self._id_holes if is_made else ["id"] if "id" in group else []
            text = re.sub(r"\{\w+\}", "%s", body.id.replace("%", "%%")) if is_made else "%s" * len(wanted)
            found[last] = group.get("name", 0), text, [group[hole] for hole in wanted]
        return found


def _any_of(pats: list[Pat]) -> str:
    return f"(?:{'|'.join(pat.whole for pat in pats)})" if pats else ""


def _declared(p: CallBuilder, name: str) -> str:
    """The declared tool that a name stands for, or ""."""
    settled, _ = resolve_tool_name(name, p.tools, p.policy(name))
    return settled if p.is_declared(settled) else ""


def _nameless(p: CallBuilder, close: Probe | None, id: str = "") -> Steps[None]:
    """Parse arguments with no name before them, or with an id that names no tool (vllm#32146)."""
    p.begin_arguments()
    try:
        text, value = yield from p.take_json()
    except Cut:
        if id:
            p.take_all()
            p.begin(id)
        raise
    except LostJsonEnd:
        p.begin(id)
        raise Broken("invalid_json", "the call is not valid JSON; send its name and a JSON object") from None
    name = id
    repairs: tuple[Repair, ...] = ()
    if id and (tool := tool_of_call(value, p.tools)) and p.policy(tool) != "off":
        name, repairs = tool, (Repair("hoisted_name", "schema", "", id, tool),)
    elif not id and p.policy("") != "off":
        name, text, repairs = find_name(value, text, p.tools)
    p.begin(name, "", repairs).parts.append(text)
    yield from _end_arguments(p, close, Undecodable)


def read_arguments_of(p: CallBuilder, close: Probe | None) -> Steps[None]:
    """The JSON arguments of a call that has begun, and what closes them."""
    if not (yield from p.peek()):
        raise Cut
    # Not the close, where that is a fence too.
    fenced = p.char() == "`" and (yield from p.test(_LABELLED_FENCE))
    for end in (close, p.compiled.call_ends.close):
        if end is not None and not fenced and (yield from p.test(end)):
            p.end_text()
            yield from _settle(p, close, Undecodable, empty=True)
            return
    try:
        value = yield from (p.read_arguments() if p.char() != '"' else _string_arguments(p))
    except LostJsonEnd:
        raise Broken("invalid_json", "the arguments are not valid JSON from here on; send a JSON object") from None
    if value is Undecodable:
        _refuse_comments(p)
    yield from _end_arguments(p, close, value)


def _refuse_comments(p: CallBuilder) -> None:
    """A bracket in a comment is none."""
    assert p.call is not None
    sent = "".join(p.call.parts)
    if _COMMENTED(sent) and isinstance(broken := decode(sent, p.limits.depth), Undecodable):
        raise Broken(broken.code, broken.message)


def _string_arguments(p: CallBuilder) -> Steps[Any]:
    """Arguments that are a string: an object written twice, or what a quotation mark too many has taken in. Where the
    call's close stands in it, and no object, the call is over at that close."""
    taken = p.capture()
    try:
        value = yield from p.read_arguments()
    except (LostJsonEnd, Cut):
        _give_back_close(p, taken)
        raise
    _give_back_close(p, taken)
    return value


def _give_back_close(p: CallBuilder, taken: Capture) -> None:
    """What was taken is the call's own, unless it holds the call's close."""
    text, scan = p.captured(taken), p.compiled.recovery.scan
    if _OBJECT_IN_STRING(text) or not any(
        scan.actions[found.lastindex or 0].endswith("close") for found in scan.finditer(text)
    ):
        p.drop(taken)
        return
    assert p.call is not None
    p.call.parts.clear()
    p.give_back(taken)
    raise Broken("arguments_not_object", "the arguments are a string; send a JSON object") from None


def _end_arguments(p: CallBuilder, close: Probe | None, value: Any) -> Steps[None]:
    """The arguments are over: what stands behind them, and their close."""
    closed = close is not None or p.compiled.call_ends.close is not None
    p.end_text()
    yield from p.take_extra_closers(p.compiled.call_ends.brackets_after_arguments)
    p.end_text()
    char = p.char() or (yield from p.peek())
    # A comment is one only where a marker must follow; elsewhere it is text.
    if char == "{" or (closed and char in _COMMENT_SIGNS):
        raise Broken("trailing_content", "something stands behind the arguments; send one JSON object and no more")
    if char and close is not None and p.compiled.call_ends.close is None and not (yield from _may_end(p, close)):
        raise Broken("trailing_content", f"unexpected {char!r} between the arguments and the close of the call")
    yield from _settle(p, close, value)


def _goes_on(p: CallBuilder) -> Steps[bool]:
    """Do more arguments stand behind these?"""
    return bool((yield from p.test(ANOTHER_OBJECT if p.char() == "," else HALF_A_KEY)))


def _may_end(p: CallBuilder, close: Probe) -> Steps[bool]:
    """Does what closes a call stand here, or what can only stand behind one?"""
    for end in (close, p.compiled.openers.begin, p.compiled.call_ends.turn):
        if end is not None and (yield from p.test(end)):
            return True
    return p.ended and close.is_begun(p.buf, p.pos)


def _settle(p: CallBuilder, close: Probe | None, value: Any, *, empty: bool = False) -> Steps[None]:
    """Takes what closes the arguments. What cannot stand behind is part of what is wrong with the call."""
    yield from p.peek()
    found = (yield from p.test(close)) if close is not None else None
    closed = p.compiled.call_ends.close is not None
    is_whole = found and p.compiled.call_ends.any.at(p.buf, p.pos, p.ended)
    if found:
        p.take_match(found)
    if close is not None and not is_whole and not closed and p.call is not None:
        if found:
            p.end_text()  # a tag that was cut short is the call's
        p.problem("unclosed", "the marker that closes the call is missing", blocking=False, call=p.call.index)
    odd = ""
    if closed or not found:
        odd = yield from what_stands_behind(p, closed=closed or close is not None)
    if not (odd or found or closed) and (yield from _goes_on(p)):
        odd = p.char()
    if not odd and empty and found and (yield from p.test(ARGUMENTS)):
        odd = "{"  # the call ends before its arguments
    if odd:
        assert p.call is not None
        p.problem("trailing_content", f"unexpected {odd!r} after the call", call=p.call.index)
    p.finish(value, empty=empty)
