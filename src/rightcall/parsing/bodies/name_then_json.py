"""A name, then JSON arguments:  f[ARGS]{"x": 1}   functions.f:0<|tool_call_argument_begin|>{"x": 1}"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from rightcall.formats.spec import Format, NameThenJson, marker_alternatives
from rightcall.parsing.bodies.body_reader import Around, BodyReader, WholeBlock
from rightcall.parsing.bodies.trailing_text import ANOTHER_OBJECT, ARGUMENTS, HALF_A_KEY, find_unexpected
from rightcall.parsing.buffer import Broken, Cut, LostJsonEnd, NotACall, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.markers import NAME, RUN, Holes, Pat, Probe, alt, blanks, literal, lookahead, seq, templates
from rightcall.repairs.envelope_repair import LooseCall, read_loose_arguments
from rightcall.repairs.loose_json import FENCE_LABEL
from rightcall.repairs.tool_meant import find_missing_name, resolve_tool_name, tool_in_sanitized_id, tool_of_nested_call
from rightcall.strict_json import Undecodable, decode, is_deep, scan_unique
from rightcall.types import Repair

_B = r"[ \t\r\n]*+"
_BLANK_RUN = re.compile(_B).match
_COMMENT_SIGNS = frozenset("/#")
_COMMENTED = re.compile(r"/\*|//|#").search
_NAMES = re.compile(r"[\w$][\w.\-$]*+").findall
_NAME_THEN_OBJECT = Probe(seq(NAME, blanks(), lookahead(literal("{"))))
# A fence with an info string: one without may as well be the end of another fence.
_LABELLED_FENCE = Probe(seq(literal("```"), Pat(FENCE_LABEL, f"(?:{FENCE_LABEL})?+", sure=RUN), literal("\n")))
_ODD_BEHIND = frozenset(',"{}])')  # arguments: brackets too many, another object, or a part that was lost
_OBJECT_IN_STRING = re.compile(r'"(?:\s|\\[nrt])*+\{').match
_FOREIGN_ID = re.compile(r"(?:call_|chatcmpl-tool-)[\w\-]++").fullmatch  # of another API, which names no tool
_NO_ARGUMENTS = "no arguments follow the name of the tool; send a JSON object with them"
_NO_MARKER = "unexpected text between the name of the tool and its arguments; send the call again"


class NameThenJsonReader(BodyReader):
    def __init__(self, body: NameThenJson, format: Format, around: Around) -> None:
        ends = templates(format.call[1])
        self.body = body
        self.open = Holes(body.open) if any(marker_alternatives(body.open)) else None
        closes = templates(body.close)
        self.close = Probe(alt(*closes)) if closes else None
        close, end = _any_of(closes) + _B if closes else "", _any_of(ends)
        # The whole opener of a call, and the whole end of a block, each with the blanks behind it.
        self._opens = re.compile(rf"(?:{self.open.probe.pat.whole}){_B}" if self.open else "(?!)").match
        self._block_end = re.compile(rf"(?>{_B}{close}{end})(?![,\"{{}}\])])").match
        self._open_ended = not (closes or ends)  # what follows the arguments decides whether they are all
        # The text before the name in an opener is no name itself.
        self._labels = {re.split(r"\{|<", text)[0].strip() for text in marker_alternatives(body.open)} - {""}
        self._id_holes = re.findall(r"\{(\w+)\}", body.id)
        imitated = re.sub(r"[^\w{}\-]", "_", body.id).replace("{name}", "(.+)").replace("{index}", "([0-9]{1,9})")
        self._imitated_id = re.compile(imitated or "(?!)").fullmatch
        self._holes = self._groups(body)
        self.begins = Probe(alt(*templates(body.open))) if self.open else Probe.never()

    def quick(self, builder: CallBuilder, start: int, bare: bool) -> WholeBlock | None:
        """Return the one call of the block that begins at index `start` of `buf`, in a list, the index behind the
        block, and whether it is certainly over. Return None if not all of it has arrived, also its closing markers, it
        is not written as usual, its arguments are no object, or what follows may continue them. Its id is "" if the
        opener has none. Nothing is taken or emitted."""
        buf = builder.buf
        pos = start if buf[start : start + 1] > " " else _BLANK_RUN(buf, start).end()  # type: ignore[union-attr]
        opener = self._opens(buf, pos)
        if opener is None or opener.lastindex is None:
            return None
        named, id, groups = self._holes[opener.lastindex]
        name = opener[named]
        if name in self._labels or name.isdigit() or (self.body.id and not id and not builder.is_declared(name)):
            return None
        begin = opener.end()
        try:
            value, end = scan_unique(buf, begin)
        except (StopIteration, ValueError, RecursionError):
            return None
        last = self._block_end(buf, end)
        if last is None or type(value) is not dict or is_deep(value, buf, begin, end, builder.limits.depth):
            return None
        over = last.end()
        goes_on = HALF_A_KEY.at(buf, over, builder.ended) if self._open_ended else False
        if goes_on:
            return None
        made = pos, end, name, buf[begin:end], value, id and id % opener.group(*groups)
        return [made], over, goes_on is False

    def is_over(self, builder: CallBuilder, end: int) -> bool:
        """Return whether it is certain that what follows index `end`, where `quick` stopped, cannot continue the
        arguments. If only blanks have arrived behind it, return whether the text has ended."""
        end = _BLANK_RUN(builder.buf, end).end()  # type: ignore[union-attr]
        if end == len(builder.buf):
            return builder.ended
        return builder.buf[end] not in _ODD_BEHIND and HALF_A_KEY.at(builder.buf, end, builder.ended) is False

    def read_loose_calls(self, builder: CallBuilder, text: str, closed: bool) -> list[LooseCall]:
        """Parse the arguments of the current call, which are invalid JSON, with the tolerant reader. Return the call in
        a list, empty without a call or if that fails. Nothing is emitted."""
        if builder.call is None:
            return []
        start = builder.text.arguments - builder.text.start
        return read_loose_arguments(
            text, start, builder.call.name, tools=builder.tools, depth=builder.limits.depth, closed=closed
        )

    def read(self, builder: CallBuilder, *, bare: bool) -> Steps[None]:
        """Parse and finish one call: opener, name or id, and JSON arguments; where the opener or a name is missing, the
        arguments may tell the tool. Raises `NotACall` if no call is here (always for a body without an opener) and
        beyond the limit of calls, `Broken` for a word of the opener in place of the name and for missing or invalid
        arguments or text behind them, `Cut` if the text ends; then a call whose name is known has begun."""
        if self.open is None:
            raise NotACall
        builder.begin_text()
        found = yield from builder.test(self.open.probe)
        cut = builder.ended and self.open.probe.is_begun(builder.buf, builder.pos)
        if found is None:
            yield from self._read_without_opener(builder, bare, cut)
            return
        named, id, groups = self._holes[found.lastindex or 0]
        name = found[named]
        id = id and id % found.group(*groups)
        if name in self._labels and not builder.is_declared(name):
            raise Broken("invalid_name", "the call has no tool name; send the name of a tool with its arguments")
        if found.group().endswith(name):  # nothing separates the name from the arguments
            yield from self._take_name(builder, name, found.end() - found.start(), cut)
        else:
            builder.take_match(found)
        repairs: tuple[Repair, ...] = ()
        if self.body.id and not builder.is_declared(name):
            if (yield from self._is_no_name(builder, name, id)):
                yield from _read_nameless(builder, self.close, "" if name.isdigit() else name)
                return
            if not id:
                name, id, repairs = self._resolve_imitated_id(builder, name)
        builder.begin(name, id, repairs)
        yield from read_arguments_of(builder, self.close)

    def _is_no_name(self, builder: CallBuilder, name: str, id: str) -> Steps[bool]:
        """Return whether `name`, taken where the name belongs, is none: the number of the call
        (sgl-project/sglang#23950, vllm#46127), or an id of another API (vllm#32146) that means no declared tool, before
        an object; such an id counts only with declared tools and without `id`, the id that the opener gave, or "". Only
        blanks are taken. Raises `Cut` if the text ends behind a number."""
        is_counter = "index" in self._id_holes and name.isdigit()
        if not is_counter and (id or builder.tools is None or not _FOREIGN_ID(name) or _declared(builder, name)):
            return False
        char = yield from builder.peek()
        if is_counter and not char:
            raise Cut
        return is_counter or char == "{"

    def _resolve_imitated_id(self, builder: CallBuilder, name: str) -> tuple[str, str, tuple[Repair, ...]]:
        """Return the tool, the id and the receipt if `name` is an id in the spelling in which clients give it back,
        `functions_f_0`, and models then imitate it (exo#2281). Otherwise, or if repairs are off, return `name`, "" and
        no receipt."""
        imitated = self._imitated_id(name)
        tool = (
            tool_in_sanitized_id(imitated[1], imitated[2], builder.tools)
            if imitated and builder.policy(name) != "off"
            else ""
        )
        if imitated is None or not tool:
            return name, "", ()
        id = self.body.id.replace("{name}", tool).replace("{index}", imitated[2])
        return tool, id, (Repair("namespace", "schema", "", name, tool),)

    def _take_name(self, builder: CallBuilder, name: str, size: int, cut: bool) -> Steps[None]:
        """Move behind an opener of `size` characters that ends in `name`, and behind blanks; if `{` follows, return
        without beginning the call (ollama#16932). If the text ends (`cut`: in the opener), take all of it, begin the
        call if its name is known, and raise `Cut`. If anything else follows, raise `NotACall` if the name means no
        declared tool (always without tools), else begin the call and raise `Broken`. Beyond the limit of calls
        `NotACall` is raised in place of a call that begins."""
        rest = builder.buf[builder.pos :] if cut else ""
        builder.advance(size)
        char = yield from builder.peek()
        if char == "{":
            return
        if cut or not char:
            self._begin_truncated(builder, rest or name)
        known = _declared(builder, name)
        if not known:
            raise NotACall
        builder.begin(known)
        raise Broken("invalid_json", _NO_ARGUMENTS)

    def _read_without_opener(self, builder: CallBuilder, bare: bool, cut: bool) -> Steps[None]:
        """Parse and finish a call without the opener of this body: arguments alone, which may tell the tool, or a name
        and then an object, which is a call rejected with `invalid_json`. Raises `NotACall` for anything else, beyond
        the limit of calls and if `bare`, `Broken` for invalid arguments or text behind them, `Cut` if the text ends. If
        the text ends in an opener (`cut`), takes all of it, begins the call if its name is known, and raises `Cut`,
        also if `bare`."""
        if cut:
            self._begin_truncated(builder, builder.buf[builder.pos :])
        char = yield from builder.peek()
        if char == "{" and not bare:
            yield from _read_nameless(builder, self.close)
            return
        found = yield from builder.test(_NAME_THEN_OBJECT)
        if found is None or bare:
            raise NotACall
        builder.take_match(found)
        builder.begin(re.sub(r":\d+\Z", "", found.group().strip()))
        assert builder.call is not None
        builder.problem("invalid_json", _NO_MARKER, call=builder.call.index)
        yield from read_arguments_of(builder, self.close)

    def _begin_truncated(self, builder: CallBuilder, text: str) -> NoReturn:
        """Take the remaining text, begin a call, with no arguments, if its name is known, and raise `Cut` (`NotACall`
        if that call exceeds the limit). The name is the last word in `text`, the end of the reply, that means a
        declared tool; without declared tools the first word, if the opener begins with the name, else none."""
        names = _NAMES(text)
        known = [name for each in names if (name := _declared(builder, each))]
        first = (
            names[:1]
            if builder.tools is None and str(marker_alternatives(self.body.open)[0]).startswith("{name}")
            else []
        )
        builder.take_all()
        builder.text.arguments = builder.at
        if known or first:
            builder.begin((known or first)[-1])
        raise Cut

    def read_choice(self, builder: CallBuilder, name: str) -> Steps[None]:
        """Begin a call of the tool `name`, which the request names, parse its arguments, which begin here, and finish
        it. Raises `Broken` for invalid arguments or text behind them, `Cut` if the text ends, `NotACall` beyond the
        limit of calls."""
        builder.begin_text()
        builder.begin(name)
        yield from read_arguments_of(builder, None)

    def _groups(self, body: NameThenJson) -> dict[int, tuple[int, str, list[int]]]:
        """Return for each alternative of the opener, by its last group: the group of the name (0 if it has none), the
        id with `%s` for its holes ("" if it has none), and the groups that fill them."""
        found = {}
        for last, holes in (self.open.groups if self.open else {}).items():
            group = dict(holes)
            is_made = bool(body.id) and all(hole in group for hole in self._id_holes)
            wanted = self._id_holes if is_made else ["id"] if "id" in group else []
            text = re.sub(r"\{\w+\}", "%s", body.id.replace("%", "%%")) if is_made else "%s" * len(wanted)
            found[last] = group.get("name", 0), text, [group[hole] for hole in wanted]
        return found


def _any_of(pats: list[Pat]) -> str:
    """Return the source for any of these patterns, "" if there are none."""
    return f"(?:{'|'.join(pat.whole for pat in pats)})" if pats else ""


def _declared(builder: CallBuilder, name: str) -> str:
    """Return the declared tool that a name means, also one that must be repaired by the policy; "" if it means none, or
    without declared tools."""
    tool, _ = resolve_tool_name(name, builder.tools, builder.policy(name))
    return tool if builder.is_declared(tool) else ""


def _read_nameless(builder: CallBuilder, close: Probe | None, id: str = "") -> Steps[None]:
    """Parse and finish a call of which only arguments are here, behind `id`, which names no tool, or behind nothing
    (""). The arguments may tell the tool, with a receipt, unless repairs are off; else `id` is its name, also "".
    `close`: the closing marker of arguments or None. Raises `Broken`, with the call begun, if the JSON has no end or
    other text follows it, `Cut` if the text ends, with the call begun only if there is an `id`, and `NotACall` beyond
    the limit of calls."""
    builder.text.arguments = builder.at
    try:
        text, value = yield from builder.take_json()
    except Cut:
        if id:
            builder.take_all()
            builder.begin(id)
        raise
    except LostJsonEnd:
        builder.begin(id)
        raise Broken("invalid_json", "the call is not valid JSON; send its name and a JSON object") from None
    name, repairs = id, tuple[Repair, ...]()
    if id and (tool := tool_of_nested_call(value, builder.tools)) and builder.policy(tool) != "off":
        name, repairs = tool, (Repair("hoisted_name", "schema", "", id, tool),)
    elif not id and builder.policy("") != "off":
        name, text, repairs = find_missing_name(value, text, builder.tools)
    builder.begin(name, "", repairs).parts.append(text)
    yield from _end_arguments(builder, close, Undecodable)


def _read_string_arguments(builder: CallBuilder) -> Steps[Any]:
    """Take arguments that are a string: an object that was encoded twice. Return what `CallBuilder.read_arguments`
    returns, and raise its `LostJsonEnd` or `Cut`. But if the string contains a closing marker of the call and no
    object, a quotation mark too many began it: then raises `Broken` with nothing taken, so that no text is lost."""
    taken = builder.capture()
    value, failure = Undecodable, None
    try:
        value = yield from builder.read_arguments()
    except (LostJsonEnd, Cut) as error:
        failure = error
    text, scan = builder.captured(taken), builder.compiled.recovery.scan
    closers = (found for found in scan.finditer(text) if scan.actions[found.lastindex or 0].endswith("close"))
    if builder.call is not None and not _OBJECT_IN_STRING(text) and any(closers):
        builder.call.parts.clear()
        builder.give_back(taken)
        raise Broken("arguments_not_object", "the arguments are a string; send a JSON object")
    builder.drop(taken)
    if failure is not None:
        raise failure
    return value


def read_arguments_of(builder: CallBuilder, close: Probe | None) -> Steps[None]:
    """Parse the JSON arguments of a call that has begun, take what closes them, and finish the call; a closing marker
    at once means no arguments (FastDeploy's test_deepseek_tool_parser.py). `close`: the closing marker of arguments,
    None if the body has none. Raises `Broken` if the arguments have no end, are invalid with a comment in them, or
    other text follows (`_end_arguments`), `Cut` if the text ends; the call is not finished then. Other invalid JSON is
    left to its repair."""
    if not (yield from builder.peek()):
        raise Cut
    # A labelled fence is not the closing marker where that is a fence too: the call would run without its arguments.
    is_fenced = builder.char() == "`" and (yield from builder.test(_LABELLED_FENCE))
    for end in (close, builder.compiled.call_ends.close):
        if end is not None and not is_fenced and (yield from builder.test(end)):
            builder.end_text()
            yield from _finish(builder, close, Undecodable, empty=True)
            return
    try:
        value = yield from (builder.read_arguments() if builder.char() != '"' else _read_string_arguments(builder))
    except LostJsonEnd:
        raise Broken("invalid_json", "the arguments are not valid JSON from here on; send a JSON object") from None
    if value is Undecodable and builder.call is not None and _COMMENTED(json := "".join(builder.call.parts)):
        # The bracket that seems to end the arguments may be a part of the comment.
        broken = decode(json, builder.limits.depth)
        if isinstance(broken, Undecodable):
            raise Broken(broken.code, broken.message)
    yield from _end_arguments(builder, close, value)


def _end_arguments(builder: CallBuilder, close: Probe | None, value: Any) -> Steps[None]:
    """Finish the call whose arguments, with this `value`, end here (`_finish`); its text ends here or behind surplus
    brackets, which are taken. Raises `Broken`, with the call not finished, if `{` follows, if a comment sign follows
    where a marker must close the call, or, where `close` is the only closing marker, if anything follows but this, also
    truncated, an opener or a turn end."""
    ends = builder.compiled.call_ends
    builder.end_text()
    yield from builder.take_extra_closers(ends.brackets_after_arguments)
    char = builder.char() or (yield from builder.peek())
    # A comment is one only where a marker must follow; elsewhere it is text.
    if char == "{" or (char in _COMMENT_SIGNS and (close or ends.close) is not None):
        raise Broken("trailing_content", "unexpected text after the arguments; send one JSON object and no more")
    if char and close is not None and ends.close is None:
        for end in (close, builder.compiled.openers.begin, ends.turn):
            if end is not None and (yield from builder.test(end)):
                break
        else:
            if not (builder.ended and close.is_begun(builder.buf, builder.pos)):
                raise Broken("trailing_content", f"unexpected {char!r} between the arguments and the close of the call")
    yield from _finish(builder, close, value)


def _finish(builder: CallBuilder, close: Probe | None, value: Any, *, empty: bool = False) -> Steps[None]:
    """Take blanks and the closing marker `close` of the arguments and finish the call; `empty`: it has no arguments. If
    `close` is missing, the note `unclosed` is added, unless the body has none (None) or the call has a closing marker
    of its own, which is never taken. What cannot follow the call, or arguments behind the marker of an `empty` one,
    rejects it and is not taken. A code fence may be left open before the call's own closing marker (LangChain's
    test_json.py)."""
    yield from builder.peek()
    found = (yield from builder.test(close)) if close is not None else None
    closed = builder.compiled.call_ends.close is not None
    if found:
        builder.take_match(found)
    elif close is not None and not closed and builder.call is not None:
        builder.problem(
            "unclosed", "the marker that closes the call is missing", blocking=False, call=builder.call.index
        )
    odd = ""
    if closed or not found:
        odd = yield from find_unexpected(builder, closed=closed or close is not None)
    if not (odd or found or closed):
        char = builder.char()
        odd = char if (yield from builder.test(ANOTHER_OBJECT if char == "," else HALF_A_KEY)) else ""
    elif not odd and empty and found and (yield from builder.test(ARGUMENTS)):
        odd = "{"  # the call ends before its arguments
    builder.finish(value, empty=empty, unexpected=odd)
