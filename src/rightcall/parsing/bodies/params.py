"""Tagged arguments:  `<function=f><parameter=k>v</parameter></function>`

Values are bare text; `value_end` says where one ends. The schema says how the text is to be read, unless the tag does.
A call whose closing tag is missing is whole if all its arguments are closed and other structure follows.
"""

from __future__ import annotations

import re
from functools import cached_property
from json.encoder import encode_basestring as quoted
from typing import Any

from rightcall.formats.spec import Format, Params, marker_alternatives
from rightcall.parsing.bodies.body_reader import Around, BodyReader, WholeBlock
from rightcall.parsing.bodies.tagged_values import SwallowedArguments, TaggedValues, break_at, resolve_kind, swallowed
from rightcall.parsing.bodies.tags import Tags
from rightcall.parsing.buffer import Broken, Cut, LostJsonEnd, NotACall, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.markers import (
    END,
    Holes,
    Pat,
    Probe,
    alt,
    blanks,
    literal,
    longest_first,
    lookahead,
    seq,
    skip_blanks,
    template,
    templates,
)
from rightcall.repairs.envelope_repair import LooseCall, read_loose_arguments
from rightcall.types import Repair

_PLAIN_NAME = re.compile(r"[^\s<>/|=\"']++")


class EndsOfCall:
    """What may follow the arguments of a call.

    - `body`, `call`: the closing markers of each.
    - `outer`: what certainly ends a call that lost its closing marker: that of the section, or the end of the last turn
      (ollama#17250, JustVugg/colibri#505).
    - `other`: what ends a call in a format without such a marker.
    """

    def __init__(self, tags: Tags) -> None:
        self.body, self.call = map(_any, tags.closing[:2])
        turns = [seq(alt(*tags.turns), blanks(), END)] if tags.turns else []
        self.outer = _any(tags.closing.section + turns)
        self.other = _any(tags.closing.section + tags.opening.all + tags.turns)


class DamagedTags:
    """Tags in damaged forms that are repaired, because each can only stand for one tag.

    - `params`: the opening tag of an argument: of a further one, and of the first one.
    - `call_opener`: the opening tag of an argument in place of the call's.
    - `stray_close`: the closing tag of a value before the first argument.
    """

    def __init__(self, tags: Tags) -> None:
        self.params = [[Probe(pat) for pat in tags.damaged_params(first=first)] for first in (False, True)]
        params = tags.param_pats(group="key")
        self.call_opener = Probe(seq(alt(*params), blanks(), lookahead(alt(*params, *tags.closing.body))))
        self.stray_close = Probe(alt(*templates(tags.body.value_close))) if tags.split_params else None


class ParamsReader(BodyReader):
    """`turns` are the end-of-turn tokens, and what begins a channel's header. `closers` are the patterns of what closes
    a value or a body: where one stands behind a call, the call may have ended too early."""

    def __init__(self, body: Params, format: Format, around: Around) -> None:
        self.body = body
        self.tags = tags = Tags(body, format, around.turns)
        self.closers = tuple(tags.closers)
        self.open = Holes(body.open)
        self.empty = Holes(body.empty) if any(marker_alternatives(body.empty)) else None
        self.param = Holes(body.param, quoted=tags.quoted)
        self.values = TaggedValues(body, tags, self.param)
        self.begins = Probe(alt(*tags.opening.body, *tags.damaged_openers))
        self.is_name_only = "{name}" in longest_first(body.open)
        if self.is_name_only:  # any word of prose is a name too
            glued = [literal(behind) for _, behind, _ in tags.split_params]
            follows = alt(*tags.param_starts, *tags.closing.call, *glued, literal("{"), END)
            self.tells = Probe(seq(self.begins.pat, blanks(), lookahead(follows)))
            self.begins = Probe(alt(*tags.opening.body, *tags.damaged_openers, *tags.params))  # the name may be missing
        self.ends = EndsOfCall(tags)
        self.json = (Probe(template(body.json[0])), Probe(template(body.json[1]))) if body.json else None
        self.damaged = DamagedTags(tags)

    @cached_property
    def swallowed(self) -> SwallowedArguments:
        """Return the finder of values that contain another argument; made at first use."""
        return SwallowedArguments(self.body, self.tags)

    def read_loose_calls(self, builder: CallBuilder, text: str, closed: bool) -> list[LooseCall]:
        """Parse the arguments of the current call, which are invalid JSON where the tags belong, with the tolerant
        reader. `text`: that of the call, from its start; `closed`: it is all of the call. Return the call in a list;
        empty if no JSON arguments began, if parsing fails, or if nothing is wrong with the JSON, so that the fault is
        behind it."""
        if builder.call is None or builder.text.arguments <= builder.text.start:
            return []
        found = read_loose_arguments(
            text,
            builder.text.arguments - builder.text.start,
            builder.call.name,
            tools=builder.tools,
            depth=builder.limits.depth,
            closed=closed,
        )
        # If the JSON is valid, the fault is in the text behind it, which this does not repair.
        return [each for each in found if each.deviations]

    @staticmethod
    def find_damaged_openers(body: Params, format: Format) -> list[Pat]:
        """Return patterns of damaged opening tags of the body that only a call can follow."""
        return Tags(body, format, []).damaged_openers

    # -- the call ------------------------------------------------------------------------------------------------------

    def read(self, builder: CallBuilder, *, bare: bool) -> Steps[None]:
        """Parse and finish one call: an empty one, or an opening tag with tagged arguments or a JSON object. `bare`: no
        marker precedes it; then its tag must not be damaged. Raises `NotACall` if no call begins here or beyond the
        limit of calls, `Broken` if it cannot be parsed, `Cut` if the text ends in it; a call whose name is known before
        that has begun."""
        builder.begin_text()
        if self.empty is not None and (found := (yield from builder.test(self.empty.probe))):
            builder.take_match(found)
            builder.begin(self.tags.plain(self.empty.fill(found).get("name", "")))
            builder.finish(empty=True)
            return
        if found := (yield from builder.test(self.open.probe)):
            yield from self._begin(builder, found)
        else:
            yield from self._begin_damaged(builder, bare)
        char = builder.char() or (yield from builder.peek())
        if char == "{":
            yield from self._json(builder)
        elif self.json is not None and (found := (yield from builder.test(self.json[0]))):
            builder.take_match(found)
            yield from self._json(builder, self.json[1])
        else:
            yield from self._params(builder)

    def quick(self, builder: CallBuilder, start: int, bare: bool) -> WholeBlock | None:
        """Return the one call of the block that begins at index `start` of `buf`, in a list, the index behind the
        block, and True (it is over). Return None unless the text has ended, it is not `bare`, the format has no nested
        values, and the call is regular: with all closing markers of its body and call and at least one argument, each
        declared, given once, of its type and without tags of the format or damaged ones in its value. Nothing is taken
        or emitted."""
        buf, tools, close = builder.buf, builder.tools, builder.compiled.call_ends.close
        begin = skip_blanks(buf, start)
        opener = self.open.probe.whole(buf, begin) if builder.ended and not (bare or self.body.item) else None
        if opener is None or tools is None or (self.empty is not None and self.empty.probe.whole(buf, begin)):
            return None
        holes, end = self.open.fill(opener), opener.end()
        name = self.tags.plain(holes.get("name", ""))
        kinds, values, members, inline = tools.kinds(name), dict[str, Any](), list[str](), False
        while param := self._match_param(buf, end := skip_blanks(buf, end)):
            key, tag_kind = self._key_of(param)
            if key in values or key not in kinds:
                return None
            found = self.values.find(builder, param.end(), key, resolve_kind(tag_kind, kinds[key]), values, inline)
            if found is None or (type(found[1]) is str and self.tags.rest_of_param(found[1])):
                return None
            json, values[key], end, inline = found
            members.append(f"{quoted(key)}: {json}")
        body = self.ends.body.whole(buf, end) if self.ends.body is not None else None
        over = body.end() if body is not None else end
        last = body if close is None else close.whole(buf, skip_blanks(buf, over))
        is_body_closed = body is not None or self.ends.body is None
        if last is None or not is_body_closed or not values or self.swallowed.find(values, kinds):
            return None
        return [(begin, over, name, f"{{{', '.join(members)}}}", values, holes.get("id", ""))], last.end(), True

    def _match_param(self, text: str, start: int) -> re.Match[str] | None:
        """Return the match of an argument's opening tag at index `start` of a text that is over. Return None if none is
        there, or another tag that only looks like one."""
        no_param = self.tags.no_param
        found = self.param.probe.whole(text, start)
        return None if found is None or (no_param is not None and no_param.whole(text, start)) else found

    def _key_of(self, found: re.Match[str]) -> tuple[str, str | None]:
        """Return the name of the argument whose opening tag was matched, and the type that the tag says: None if it
        says none or an unknown one."""
        if not self.body.types:  # then the tag names nothing but the key
            return self.tags.plain(found[found.lastindex or 0]), None
        holes = self.param.fill(found)
        return self.tags.plain(holes["key"]), self.body.types.get(holes.get("type", ""))

    def _begin(self, builder: CallBuilder, opener: re.Match[str]) -> Steps[None]:
        """Take the opening tag that `opener` matched and begin its call; the name of an argument glued to that of the
        tool is left. Where the tag is only a name that is not declared (without tools none is), raises `NotACall` if it
        is a word of prose (`_really_opens`), `Cut` if the text ends behind it; the tag is taken then. Raises `NotACall`
        also beyond the limit of calls."""
        holes, size = self.open.fill(opener), opener.end() - builder.pos
        name = self.tags.plain(holes.get("name", ""))
        if self.is_name_only and builder.tools is not None and name not in builder.tools:
            key = yield from self._find_glued_key(builder, name, size)
            name, size = name.removesuffix(key), size - len(key)
        builder.advance(size)
        if self.is_name_only and not (builder.is_declared(name) or (yield from self._really_opens(builder))):
            raise NotACall
        builder.begin(name, holes.get("id", ""))

    def _find_glued_key(self, builder: CallBuilder, name: str, size: int) -> Steps[str]:
        """Return the name of the first argument if it is glued to the tool's, as in `bashcommand</arg_key>`
        (vllm#47190): the tag behind a key follows, and exactly one division of `name` gives a declared tool and one of
        its arguments. Else return "", always in a format whose keys have no tags of their own. `size`: the length of
        the opening tag. Nothing is taken."""
        assert builder.tools is not None
        for _, closes, _ in self.tags.split_params:
            if (yield from builder.test(Probe(literal(closes)), size)):
                tools = [name[:end] for end in range(1, len(name)) if name[:end] in builder.tools]
                keys = [
                    name.removeprefix(tool) for tool in tools if name.removeprefix(tool) in builder.tools.kinds(tool)
                ]
                return keys[0] if len(keys) == 1 else ""
        return ""

    def _really_opens(self, builder: CallBuilder) -> Steps[bool]:
        """Take blanks and return whether a bare undeclared name opens a call: an argument or the call's closing marker
        follows, or, without declared tools, a section's closing marker, an opener or the end of the turn. Otherwise it
        is prose about the marker. What follows is not taken. Raises `Cut` if the text ends behind the name."""
        if not (yield from builder.peek()):
            raise Cut
        if (yield from builder.test(self.param.probe)):
            return True
        if self.ends.call is not None and (yield from builder.test(self.ends.call)):
            return True
        return (
            builder.tools is None and self.ends.other is not None and bool((yield from builder.test(self.ends.other)))
        )

    def _begin_damaged(self, builder: CallBuilder, bare: bool) -> Steps[None]:
        """Take a damaged opening tag and begin its call, with a receipt, if it can only mean one. Otherwise raises
        `Broken`, with one character taken and no call begun, for arguments without a name or a broken tag; `Cut` if the
        text ends in the tag, with the call begun only if its name is known (`_cut_in_opener`); `NotACall` if none is
        here, the call is `bare`, or beyond the limit of calls."""
        if bare:
            raise NotACall
        if builder.ended:
            self._cut_in_opener(builder)
        if (yield from self._repair_opener(builder)):
            return
        if (yield from self._misnamed_opener(builder)):
            return
        if (yield from builder.test(self.param.probe)):
            builder.advance()
            raise Broken("invalid_name", "the call has arguments, but no name; name the tool before them")
        starts = self.tags.open_starts
        if starts is not None and (yield from builder.test(starts)):
            if builder.ended and self.open.probe.at(builder.buf, builder.pos, False) is None:
                raise Cut
            opener = marker_alternatives(self.body.open)[0].strip()
            builder.advance()  # behind what opens a call, where the search for the next begins
            raise Broken("invalid_call", f"the call's opening tag is broken; write it as {opener}")
        raise NotACall

    def _cut_in_opener(self, builder: CallBuilder) -> None:
        """If the text, which is over, ends in the opening tag, and the name is declared or other text of the tag
        follows it, take the text, begin that call, whose arguments begin at the end (`text.arguments`), and raise
        `Cut`; beyond the limit of calls `NotACall`. Else do nothing."""
        for probe in self.tags.cut_opens:
            found = probe.at(builder.buf, builder.pos, True)
            name = self.tags.plain(found["name"]) if found else ""
            if found and (found.end() > found.end("name") or builder.is_declared(name)):
                builder.take_all()
                builder.text.arguments = builder.at
                builder.begin(name)
                raise Cut

    def _misnamed_opener(self, builder: CallBuilder) -> Steps[bool]:
        """Take the opening tag of an argument in place of the call's, `<parameter=bash>`, begin the call with a
        receipt, and return True (antirez/ds4#1050). It must name a declared tool and no argument of any tool, and an
        argument of that tool or the body's closing marker must follow, so that it has no value. Else, or if repairs are
        off, return False, with nothing taken. Raises `NotACall`, with the tag taken, beyond the limit of calls."""
        found = yield from builder.test(self.damaged.call_opener)
        if not found or builder.tools is None:
            return False
        written = [each for each in found.groups() if each is not None]
        name, *keys = map(self.tags.plain, written)
        is_argument = any(name in builder.tools.kinds(tool.name) for tool in builder.tools)
        if (
            name not in builder.tools
            or is_argument
            or builder.policy(name) == "off"
            or not builder.tools.kinds(name).keys() >= {*keys}
        ):
            return False
        self._begin_repaired(builder, found, written[0])
        return True

    def _repair_opener(self, builder: CallBuilder) -> Steps[bool]:
        """Take a damaged opening tag with a name, begin its call with a receipt, and return True. Return False, with
        nothing taken, if none is here or repairs are off for that name. Raises `NotACall`, with the tag taken, beyond
        the limit of calls."""
        for damaged in self.tags.damaged_opens:
            found = yield from builder.test(damaged)
            if found and builder.policy(found["name"]) != "off":
                self._begin_repaired(builder, found, found["name"])
                return True
        return False

    def _begin_repaired(self, builder: CallBuilder, opener: re.Match[str], name: str) -> None:
        """Take a damaged opening tag and begin the call of the tool `name` (as it is written there), with the receipt
        `broken_opener`. Raises `NotACall`, with the tag taken, beyond the limit of calls."""
        before, after = opener.group().strip(), longest_first(self.body.open)[0].replace("{name}", name)
        builder.take_match(opener)
        builder.begin(self.tags.plain(name), repairs=(Repair("broken_opener", "exact", "", before, after),))

    def _json(self, builder: CallBuilder, close: Probe | None = None) -> Steps[None]:
        """Take a JSON object in place of the tagged arguments (SGLang's deepseekv32_detector.py lists both forms), its
        own closing marker `close`, if there is one, and the end of the body, and finish the call; invalid JSON with an
        end is repaired or rejected there. Raises `Broken` if the object has no end or its end markers do not follow,
        `Cut` if the text ends."""
        if not (builder.char() or (yield from builder.peek())):
            raise Cut
        try:
            value = yield from builder.read_arguments()
        except LostJsonEnd:
            raise Broken("invalid_json", "the arguments are not valid JSON from here on; send a JSON object") from None
        if close is not None:
            yield from self._end_json(builder, close)
        yield from self._take_end(builder, has_arguments=True)
        builder.finish(value)

    def _end_json(self, builder: CallBuilder, close: Probe) -> Steps[None]:
        """Take blanks and the closing marker `close` behind a JSON object of arguments. Raises `Broken` for other text,
        `Cut` if the text ends before the marker or in it."""
        char = builder.char() or (yield from builder.peek())
        found = yield from builder.test(close)
        if found:
            builder.take_match(found)
        elif not char or (builder.ended and close.is_begun(builder.buf, builder.pos)):
            raise Cut
        else:
            raise Broken("unexpected_text", "unexpected text follows the object of arguments; close the call behind it")

    def _params(self, builder: CallBuilder) -> Steps[None]:
        """Take the tagged arguments, if any, and the end of the body, and finish the call; a value that seems to
        contain another argument (`ambiguous_end`), or whose end is doubtful, or an undeclared key that is no name
        rejects it. Raises `Broken` for a repeated argument, a broken tag, a value without a certain end, other text
        between arguments or a missing end, `Cut` if the text ends; the call is not finished then."""
        tags, param, call = self.tags, self.param, builder.call
        assert call is not None
        values: dict[str, Any] = {}
        value: Any = None
        while True:
            if not builder.char():
                yield from builder.peek()
            while (found := param.probe.at(builder.buf, builder.pos, builder.ended)) is None:
                yield
            if found and tags.no_param is not None and (yield from builder.test(tags.no_param)):
                found = False
            if not found and not values and (yield from self._take_stray_close(builder)):
                continue
            if not found and (damaged := (yield from self._damaged_param(builder, values))):
                key, value = damaged
                values[key] = value
                continue
            if not found:
                break
            key, tag_kind = self._key_of(found)
            if key in values:
                raise Broken("duplicate_argument", f"the argument {key!r} is given twice; send it once", "/" + key)
            builder.take_match(found)
            if builder.tools is not None and key not in call.kinds:
                builder.check_key(key, _PLAIN_NAME)
            value = values[key] = yield from self.values.read(builder, key, tag_kind, values)
            if isinstance(value, str) and tags.rest_of_param(value):
                raise Broken("unexpected_text", f"the tag that opens {key!r} is broken or doubled", "/" + key)
        yield from self._take_end(builder, has_arguments=bool(values), last=value)
        if values:
            builder.give("}")
            if key := self.swallowed.find(values, None if builder.tools is None else call.kinds):
                builder.problem("ambiguous_end", *swallowed(key, "another argument"), call=call.index)
        builder.finish(values, empty=not values)

    def _damaged_param(self, builder: CallBuilder, values: dict[str, Any]) -> Steps[tuple[str, Any] | None]:
        """Take a declared argument whose opening tag is damaged, with its value and a receipt, and return its key
        and value. `values`: the arguments so far. Return None, with nothing taken, if no such tag is here, the
        argument is in `values`, the tag before a key that is also a tool is missing, the format has no tags around
        keys, or repairs are off. Raises `Broken` if its value does not certainly begin and end here, `Cut` if the
        text ends."""
        if (
            builder.call is None
            or not builder.text.is_open
            or not self.tags.split_params
            or builder.policy(builder.call.name) == "off"
        ):
            return None
        for probe, (opens, closes, value_tag) in zip(
            self.damaged.params[not values], self.tags.split_params, strict=True
        ):
            found = yield from builder.test(probe)
            key = self.tags.plain(found[1]) if found else ""
            is_name = builder.is_declared(key)  # of another call, unless it has its own tag
            if (
                not found
                or builder.kind(key) is None
                or key in values
                or (is_name and not found.group().startswith(opens))
            ):
                continue
            is_on_line = builder.text_so_far().endswith("\n")
            builder.take_match(found)
            builder.add_repair("broken_opener", found.group().strip(), f"{opens}{key}{closes}{value_tag}")
            if found[2]:
                return key, (yield from self.values.read(builder, key, None, values))
            return key, (yield from self._value_without_tag(builder, key, value_tag, values, is_on_line))
        return None

    def _value_without_tag(
        self, builder: CallBuilder, key: str, tag: str, values: dict[str, Any], is_on_line: bool
    ) -> Steps[Any]:
        """Take a value of `key` whose opening tag, `tag`, is missing (vllm#49249), give its JSON to the call and return
        it. `values`: the arguments so far. Raises `Broken` if it is not certain where the value begins or ends, `Cut`
        if the text ends.

        A line break before the value is that of the missing tag if the argument's tag is on a line of its own
        (`is_on_line`).
        """
        size = break_at(builder)
        builder.advance(size if is_on_line else 0)
        taken = builder.capture()
        value = yield from self.values.read(builder, key, None, values)
        text = builder.release(taken)
        near = value[: len(tag) + 2].partition("\n")[0] if isinstance(value, str) else "x"
        may_be_tag = not near.strip() or "<" in near or ">" in near or tag.strip("<>") in near
        if tag in text or text[:1] in "<\r\n" or may_be_tag:
            message = f"the tag {tag} before the value of {key!r} is missing, and where the value begins is not certain"
            raise Broken("ambiguous_end", f"{message}; send the call again", f"/{key}")
        return value

    def _take_stray_close(self, builder: CallBuilder) -> Steps[bool]:
        """Take the closing tag of a value between the name and the first argument, or between the name of a declared
        tool without arguments and the call's closing marker, and the blanks behind it, with a receipt, and return True
        (fw-ai-external/python-sdk#119). Return False, with nothing taken, if none is here, something else follows it,
        keys have no tags of their own in the format, or repairs are off."""
        if builder.call is None or self.damaged.stray_close is None or builder.policy(builder.call.name) == "off":
            return False
        found = yield from builder.test(self.damaged.stray_close)
        if not found:
            return False
        has_none = (
            builder.tools is not None
            and builder.call.name in builder.tools
            and not builder.tools.kinds(builder.call.name)
        )
        follows = Probe(seq(blanks(), alt(*self.tags.params, *(self.tags.closing.call if has_none else ()))))
        size = found.end() - builder.pos
        if not (yield from builder.test(follows, size)):
            return False
        builder.advance(size)
        builder.add_repair("broken_opener", builder.call.name + found.group(), builder.call.name)
        yield from builder.peek()
        return True

    def _take_end(self, builder: CallBuilder, *, has_arguments: bool, last: Any = None) -> Steps[None]:
        """Take blanks and the closing marker of the body; where it is missing, or the format has none, do as
        `_accept_unclosed` does. `has_arguments`: the call has some; `last`: the value of the last one. Raises `Broken`
        if the call does not end here, `Cut` if the text ends before the marker or in it. The call is not finished."""
        char = builder.char() or (yield from builder.peek())
        if self.ends.body is not None:
            found = yield from builder.test(self.ends.body)
            if found:
                builder.take_match(found)
                return
        if not char:
            raise Cut
        yield from self._accept_unclosed(builder, has_arguments, last)

    def _accept_unclosed(self, builder: CallBuilder, has_arguments: bool, last: Any) -> Steps[None]:
        """Accept a body that lacks its closing marker (burin-labs/harn,
        crates/harn-vm/src/llm/tools/tests/function_markup.rs); nothing is taken. An optional marker may be missing
        before the closing marker of the call or the section, an opener or the end of a turn. A required one may be
        missing before the closing marker of the call and, behind arguments, before that of the section or the end of
        the last turn; then the note `unclosed` is added.

        Raises `Broken` elsewhere, and where a required marker is missing and `last` ends with a closing marker;
        `Cut` if the text ends in a tag."""
        ends, is_required = self.ends, self.tags.closing.is_required
        if ends.call is not None and (yield from builder.test(ends.call)):
            if ends.body is None:
                return
        elif ends.other is None or not (yield from builder.test(ends.other)):
            if (yield from self._is_cut(builder)):
                raise Cut
            raise Broken("unexpected_text", "something other than an argument stands between the call's arguments")
        elif is_required and not (has_arguments and ends.outer is not None and (yield from builder.test(ends.outer))):
            raise Broken("abandoned", "the call was opened, and something else begins before its end; send it whole")
        if is_required and builder.call is not None:
            if isinstance(last, str) and self.tags.ends_in_shut(last):
                raise Broken("ambiguous_end", "the last argument ends with what closes the call; send the call again")
            message = "the marker that closes the call is missing"
            builder.problem("unclosed", message, blocking=False, call=builder.call.index)

    def _is_cut(self, builder: CallBuilder) -> Steps[bool]:
        """Return whether the text is over and what is left of it is the beginning of an argument's opening tag, of a
        closing marker, or of what else ends a call; a whole one is not a beginning. Nothing is taken."""
        for probe in (self.param.probe, self.ends.body, self.ends.call, self.ends.other):
            if (
                probe is not None
                and not (yield from builder.test(probe))
                and builder.ended
                and probe.is_begun(builder.buf, builder.pos)
            ):
                return True
        return False


def _any(pats: list[Pat]) -> Probe | None:
    """Return a probe for any of these patterns, or None if there are none."""
    return Probe(alt(*pats)) if pats else None
