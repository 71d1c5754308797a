"""Values, and the reports about them (B11, D, F)."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from classes.case import EIGHT, KITS, CallData, Case, Expect
from classes.wire import Wire, join_pieces

_EXACT = (
    "007",
    "null",
    "1e5",
    "True",
    "ends with a line\n",
    "  two blanks",
    "2134\n\n",
    "[1]",
    "a\tb",
    "é\u2028z",
    "-0",
)
_UNQUOTED = ("2024-01-05", "10:30", "https://example.org/a?q=1", "3 days", "50%", "007", "a.b/c")


def exact_strings(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """D: a declared string is returned exactly as it was sent, or the format reports that it cannot carry it."""
    kit = KITS[tools]
    for value in dice.sample(_EXACT, 6):
        call = (kit.find, {kit.text: value})
        text = wire.render_parts([call], tools)
        if text is not None:
            yield Case("D", "exact string", wire.name, text, Expect(calls=[call]), tools)


def of_one_format(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """D: seed_oss writes values inline; kimi_k3 escapes attributes; a Python number that is a declared string."""
    kit = KITS[tools]
    if wire.name == "seed_oss":
        for value in ("owl\n", "\nowl", "owl", "two\nlines\n\n"):
            inner = f"<function={kit.find}>\n<parameter={kit.text}>{value}</parameter>\n</function>"
            text = f"<seed:tool_call>\n{inner}\n</seed:tool_call>"
            yield Case("D", "value inline", wire.name, text, Expect(calls=[(kit.find, {kit.text: value})]), tools)
    if wire.name == "kimi_k3":
        for key in ('say "hi"', "a&b", "x<y"):
            call: CallData = ("lookup", {key: "R&D <b>"})
            escaped = key.replace("&", "&amp;").replace('"', "&quot;")
            text = join_pieces(wire.pieces([("lookup", {escaped: "R&D <b>"})]))
            yield Case("D", "escaped attribute", wire.name, text, Expect(calls=[call]), "escaped")
    if wire.is_pythonic and tools != "shop":
        for value in ("007", "02134"):
            text = (wire.render_parts([(kit.find, {kit.text: "PLACE"})], tools) or "").replace('"PLACE"', value)
            text = text.replace("'PLACE'", value)
            expected = Expect(
                either=[Expect(calls=[(kit.find, {kit.text: value})]), Expect(calls=[], has_problem=True)]
            )
            expected = Expect(calls=[(kit.find, {kit.text: value})]) if wire.name == "lfm2" else expected
            yield Case("D", "leading zeros", wire.name, text, expected, tools)


def unquoted(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """B11: lfm2's unquoted values of declared strings, quotes inside quotes, and sets, which are rejected."""
    if wire.name != "lfm2":
        return
    for tools in ("words", "files"):
        kit = KITS[tools]
        opens, closes = "<|tool_call_start|>[", "]<|tool_call_end|>"
        for value in _UNQUOTED:
            calls = [(kit.find, {kit.text: value, kit.count: 3})]
            text = f"{opens}{kit.find}({kit.text}={value}, {kit.count}=3){closes}"
            yield Case("B11", "unquoted value", wire.name, text, Expect(calls=calls), tools)
        quoted = [(kit.find, {kit.text: "grep 'owl' notes"})]
        text = f"{opens}{kit.find}({kit.text}='grep 'owl' notes'){closes}"
        yield Case("B11", "quotes in quotes", wire.name, text, Expect(calls=quoted), tools)
        text = f"{opens}{kit.keep}({kit.title}='a', {kit.meta}={{'tags': {{'x', 'y'}}}}){closes}"
        yield Case("B11", "a set", wire.name, text, Expect(calls=[], has_problem=True), tools)


def all_that_is_missing(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """F: all missing arguments are named in one problem; a block without a name is `NoToolCallFound` to `select`."""
    arguments = dict.fromkeys(dice.sample(EIGHT, dice.randint(0, 2)), "x")
    text = wire.render_parts([("fill_form", arguments)], "eight")
    if text is not None:
        lacking = [name for name in EIGHT if name not in arguments]
        expect = Expect(calls=[], refused=1, codes=["missing"], one_message=lacking)
        yield Case("F", "many arguments missing", wire.name, text, expect, "eight")
    if wire.name == "hermes":
        for body in ('{"arguments": {}}', '{"name": "", "arguments": {"zzz": 1}}', "{}"):
            text = f"<tool_call>{body}</tool_call>"
            yield Case(
                "F", "select without a name", wire.name, text, Expect(codes=["NoToolCallFound"]), tools, by="select"
            )
