"""All problem codes: cause, cure, and an example text.

Codes are stable: a listed code keeps its name and meaning. New ones may be added, and messages may be reworded. The
page `docs/problems.md` is generated from this table, and tests compare it with the source.
"""

from __future__ import annotations

import msgspec

from rightcall.types import Tool


class Code(msgspec.Struct, frozen=True):
    """One problem code. `example` is a model's text in `format`, or a provider's answer as JSON; empty if none fits on
    a line."""

    code: str
    cause: str
    cure: str
    example: str = ""
    format: str = "hermes"
    blocking: bool = True


def _hermes_call(arguments: str, name: str = "book") -> str:
    return f'<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call>'


_DEEP = '{"x":' * 201 + "1" + "}" * 201

TOOLS: tuple[Tool, ...] = (
    Tool(
        name="book",
        parameters={
            "type": "object",
            "properties": {
                "city": {"type": "string", "minLength": 2},
                "nights": {"type": "integer", "minimum": 1, "maximum": 30},
                "room": {"enum": ["single", "double"]},
                "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
                "guests": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
                "price": {"anyOf": [{"type": "integer"}, {"type": "object", "required": ["most"]}]},
                "extra": {"type": "object", "not": {"required": ["pets"]}},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    ),
    Tool(name="list_bookings", parameters={"type": "object", "properties": {}}),
)

NAMES: tuple[Code, ...] = (
    Code(
        "invalid_name",
        "The call has no tool name, or one with characters other than letters, digits, `_`, `-` and `.`.",
        "Send the exact name of a declared tool.",
        _hermes_call('{"city": "Oslo"}', "book a room!"),
    ),
    Code(
        "unknown_tool",
        "No tool of that name is declared. The message names the nearest.",
        "Send one of the declared names; or declare the tool.",
        _hermes_call('{"city": "Oslo"}', "cancel"),
    ),
    Code(
        "names_disagree",
        "A call names two tools: what stands before it says one, the call itself another.",
        "Send the name of the one tool that is meant, in both places.",
        "<|message_model|>list_bookings<|content_invoke_tool_json|>"
        '{"name": "book", "args": {"city": "Oslo"}}<|end_message|>',
        "inkling",
    ),
    Code(
        "not_authorised",
        "The tools were scoped (`Toolset.scoped`), and this name is outside the scope, whether it exists or not; "
        'or the request said `choice="none"`.',
        "Send one of the names in scope; or widen the scope.",
    ),
    Code(
        "tool_left_out",
        "A definition among the tools cannot be used: it was left out, and calls of it are `unknown_tool`. "
        "In `Toolset.notes`.",
        "Mend the definition; the message tells where the fault is and what to write instead.",
        blocking=False,
    ),
    Code(
        "tool_mended",
        'A word of a definition is wrong and has one meaning (`"type": "float"`): it was taken for that. '
        "In `Toolset.notes`.",
        "Write what it was taken for, which the message tells.",
        blocking=False,
    ),
)

ARGUMENTS: tuple[Code, ...] = (
    Code(
        "missing",
        "A required argument was not sent, or is null where null is not allowed.",
        "Send it. The message lists what was received.",
        _hermes_call('{"nights": 2}'),
    ),
    Code(
        "unknown_argument",
        "An argument that the tool does not have, and its schema allows no others.",
        "Send only the arguments that the message lists.",
        _hermes_call('{"city": "Oslo", "pets": 1}'),
    ),
    Code(
        "wrong_type",
        "A value of another type than the schema says.",
        "Send the type that the message names.",
        _hermes_call('{"city": "Oslo", "nights": "two"}'),
    ),
    Code(
        "not_allowed",
        "A value that is not one of the values of an `enum` or `const`.",
        "Send one of the values that the message lists.",
        _hermes_call('{"city": "Oslo", "room": "suite"}'),
    ),
    Code(
        "no_match",
        "A value that fits none (`anyOf`), or not exactly one (`oneOf`), of the alternatives. Where one of them was "
        "plainly meant, what is wrong by that one is told instead.",
        "Send a value of one of the declared shapes.",
        _hermes_call('{"city": "Oslo", "price": [10]}'),
    ),
    Code(
        "out_of_range",
        "A number below, above or beside what the schema allows.",
        "Send a number within the bounds.",
        _hermes_call('{"city": "Oslo", "nights": 99}'),
    ),
    Code(
        "wrong_length",
        "A string, array or object that is too short or too long.",
        "Send one of a length that the schema allows.",
        _hermes_call('{"city": "O"}'),
    ),
    Code(
        "wrong_pattern",
        "A string that does not match the declared pattern.",
        "Send a string that does.",
        _hermes_call('{"city": "Oslo", "code": "osl"}'),
    ),
    Code(
        "not_unique",
        "An array holds the same item twice, and the schema forbids it.",
        "Send each item once.",
        _hermes_call('{"city": "Oslo", "guests": ["Ada", "Ada"]}'),
    ),
    Code(
        "schema",
        "The arguments break another rule of the schema; the message has the rule.",
        "Send arguments that keep it.",
        _hermes_call('{"city": "Oslo", "extra": {"pets": true}}'),
    ),
    Code(
        "invalid_argument",
        "The value fits the schema, and the tool's own validation refuses it all the same.",
        "Send a value that the message allows.",
    ),
    Code(
        "arguments_not_object",
        "The arguments are a string, number or array and not a JSON object.",
        "Send an object with the arguments by name.",
        _hermes_call("[1, 2]"),
    ),
    Code(
        "misplaced_argument",
        "An argument of the tool stands in the call beside the arguments, and repair is off. Else it is put among them "
        "(`hoisted_argument`). Or the arguments are a whole call of another tool. Or a call without arguments has an "
        "object under a key that is none of theirs.",
        "Send it among the arguments; or the arguments alone.",
    ),
    Code(
        "unknown_key",
        "The call has a key beside its name and arguments that is no argument of the tool. It had no use.",
        "Nothing needs to be done; if it was meant as an argument, send it among them under its declared name.",
        '<tool_call>{"name": "book", "arguments": {"city": "Oslo"}, "reason": "a trip"}</tool_call>',
        blocking=False,
    ),
    Code(
        "arguments_disagree",
        "A call that a program made: its `arguments` are not what its argument text `json` says, so nobody knows which "
        "of them was meant.",
        "Give `Call` one of the two: `Call(name, arguments)`, or `repair(Call(name, json=text), tools)`.",
    ),
)

CUT: tuple[Code, ...] = (
    Code(
        "truncated",
        "The text or the stream ended inside the call, or a provider cut its answer and nothing shows that the last "
        "call had ended. Such a call is never completed.",
        "Ask for the whole call again, with more room or less to say.",
        '<tool_call>{"name": "book", "arguments": {"city": "Os',
    ),
    Code(
        "incomplete",
        "`check` was given a call that had been cut off or could not be read (`complete=False`).",
        "Ask for the call again.",
    ),
    Code(
        "too_large",
        "The reply, one call, the number of calls, or of openers that hold none, is over a limit. What lies beyond it "
        "was not read. Or the arguments are too large to be checked against their tool's schema.",
        "Send less; or raise the limit with `Limits`.",
    ),
    Code(
        "too_deep",
        "The arguments are nested deeper than the limit.",
        "Send them flatter; or raise the limit with `Limits`.",
        _hermes_call(_DEEP),
    ),
    Code(
        "unclosed",
        "The marker that closes the call is missing; the call itself was whole.",
        "Nothing needs to be done.",
        '<tool_call>{"name": "list_bookings", "arguments": {}}',
        blocking=False,
    ),
    Code(
        "abandoned",
        "The call was opened, but has neither an argument nor an end: the model began again, or stopped.",
        "Send the whole call.",
        "<tool_call>\n<function=book>\n<tool_call>\n<function=list_bookings>\n</function>\n</tool_call>",
        "qwen3_coder",
    ),
)

SYNTAX: tuple[Code, ...] = (
    Code(
        "invalid_json",
        "The call or its arguments are not JSON, and no repair rule reads them.",
        "Send valid JSON. The message says at which character it stops being JSON.",
        _hermes_call('{"city": }'),
    ),
    Code(
        "trailing_content",
        "Something stands behind the call or its arguments that does not belong there. Of words behind a call's own "
        "end, before what ends all calls, it is a note: they are text.",
        "Send nothing behind the call.",
        '[book(city="Oslo" "Bergen")]',
        "pythonic",
    ),
    Code(
        "late_arguments",
        "A server went on with the arguments of a call that it had ended. The call stands as it was when it ended.",
        "Nothing needs to be done; a server that does this often loses arguments.",
        blocking=False,
    ),
    Code(
        "unexpected_text",
        "Something other than an argument stands between the arguments.",
        "Send the arguments one after the other, with nothing between them.",
        "<tool_call>\n<function=book>\nin\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
        "qwen3_coder",
    ),
    Code(
        "invalid_call",
        "A call was opened, and what follows cannot be parsed: its opening tag is damaged, it has another structure "
        "than the format's, or a parenthesis of the call is missing.",
        "Write the call as the format has it.",
        "<tool_call>\n<function name>\nbook\n</function>\n</tool_call>",
        "qwen3_coder",
    ),
    Code(
        "uncertain",
        "What was sent can be read in more than one way, and the repair that it needs would be a guess.",
        "Send the call again, well formed, with every argument in its place.",
        "[book(city='Oslo', guests=[Ann, Bob])]",
        "pythonic",
    ),
    Code(
        "ambiguous_end",
        "An argument that is bare text holds tags of its own format, or such tags stand behind the call, so that its "
        "end is not certain.",
        "Close each argument and each call, and write no tags of the format into a value.",
        "<tool_call><function=book><parameter=city>\n</parameter> b <parameter=\n</parameter></function></tool_call>",
        "qwen3_coder",
    ),
    Code(
        "duplicate_argument",
        "An argument is given twice, or all of them are. It does not block where both are the same.",
        "Send it once.",
        '[book(city="Oslo", city="Rome")]',
        "pythonic",
    ),
    Code(
        "duplicate_key",
        "An object in the arguments, or the call around them, has a key twice. It does not block where both values are "
        "the same.",
        "Send it once.",
        "[book(city='Oslo', extra={'a': 1, 'a': 2})]",
        "pythonic",
    ),
    Code(
        "unclosed_argument",
        "An argument was not closed before the next began. It blocks only if the arguments cannot be told apart.",
        "Close each argument.",
        "<tool_call>\n<function=book>\n<parameter=city>\nOslo\n<parameter=nights>\n2\n</parameter>\n</function>\n</tool_call>",
        "qwen3_coder",
        blocking=False,
    ),
    Code(
        "unterminated_string",
        "A string in the arguments is not closed.",
        "Close it.",
        "<function_calls>\nbook(city='Oslo)\n</function_calls>",
        "olmo3",
    ),
    Code(
        "invalid_value",
        "A value cannot be parsed: none is there, a list or an object is not closed, its members are not separated by "
        "commas, or the key of an object is no string or has no `:`.",
        "Send a literal: a string in quotes, a number, true, false, null, a list or an object.",
        '[book(city="Oslo", nights=:)]',
        "pythonic",
    ),
    Code(
        "not_finite",
        "A number that JSON cannot carry: NaN, infinity, or too large.",
        "Send a finite number.",
        '[book(city="Oslo", nights=inf)]',
        "pythonic",
    ),
    Code(
        "positional_argument",
        "An argument has no name.",
        "Write `name=value`.",
        '[book("Oslo")]',
        "pythonic",
    ),
    Code(
        "invalid_argument_name",
        "The name of an argument is missing or is no name.",
        "Use the declared name.",
        '[book(my city="Oslo")]',
        "pythonic",
    ),
)

CONTRACT: tuple[Code, ...] = (
    Code(
        "several_calls",
        "A block holds more than one call. None of them runs.",
        "Send each call in a block of its own.",
        '<tool_call>book({ city: "Oslo" })\nbook({ city: "Rome" })</tool_call>',
        "contract",
    ),
    Code(
        "no_call",
        "A block for a call is empty, or holds something else.",
        "Write one call in it, `name({ key: value })`, or leave it out.",
        "<tool_call></tool_call>",
        "contract",
    ),
    Code(
        "labelled_call",
        "A word and a colon stand before the call. It may be an example, so it does not run.",
        "Write the call alone.",
        '<tool_call>Hint: book({ city: "Oslo" })</tool_call>',
        "contract",
    ),
    Code(
        "invalid_heredoc",
        "`<<` is not followed by a tag and a line break.",
        "Write `<<EOF`, a line break, the text, and `EOF` at the beginning of a line.",
        "<tool_call>book({ city: <<Oslo })</tool_call>",
        "contract",
    ),
    Code(
        "bare_call",
        "The call stood outside its block, at the beginning of a line. It runs all the same.",
        "Write it into a block.",
        'book({ city: "Oslo" })',
        "contract",
        blocking=False,
    ),
    Code(
        "stray_text",
        "Text stands outside all blocks. `feedback` says so; the reply keeps it as text.",
        "Write it into a block, or leave it out.",
        blocking=False,
    ),
    Code(
        "unknown_tag",
        "A tag stands outside all blocks that is none of the protocol's.",
        "Use only the blocks of the protocol.",
        blocking=False,
    ),
    Code(
        "empty_done",
        "The block that says the task is done is empty.",
        "Write the agreed word into it, or leave it out.",
        blocking=False,
    ),
    Code(
        "no_blocks",
        "The reply has reasoning and nothing else.",
        "Send a call, or an answer.",
    ),
)

ANSWERS: tuple[Code, ...] = (
    Code(
        "provider_error",
        "The server sent an error where an answer should be.",
        "Look at the message; the model is not at fault.",
        '{"error": {"message": "overloaded", "code": 529}}',
    ),
    Code(
        "malformed_response",
        "The response has the shape of no provider's.",
        "Look at the server.",
        '{"choices": 3}',
    ),
    Code(
        "malformed_chunk",
        "A chunk of the stream is not valid JSON.",
        "Look at the server or the way to it; ask again.",
    ),
    Code(
        "call_not_object",
        "An entry in the list of calls is not an object.",
        "Send each call as an object; of a provider's answer, look at the server. The other calls are kept.",
        '{"role": "assistant", "tool_calls": ["book"]}',
    ),
    Code(
        "missing_function",
        "An entry in the list of calls does not say which function it calls.",
        "Look at the server; ask again.",
        '{"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function"}]}',
    ),
    Code(
        "unknown_shape",
        "What was read is no answer of a known provider.",
        "Say which it is with `api=`; or pass the model's text to `parse`.",
        blocking=False,
    ),
)

PROTOCOL: tuple[Code, ...] = (
    Code(
        "ledger_open",
        "The model says that the task is done, and the task ledger still has something open or blocked.",
        "Finish what is listed, or mark it dropped with a note that says why.",
    ),
)

REASONING: tuple[Code, ...] = (
    Code(
        "call_in_open_reasoning",
        "The call stands in reasoning that was never closed: it may be one that the model only thinks of.",
        'Close the reasoning, and send the call behind it; or say with `reasoning_calls="never"` that it is thought.',
        '<think>\n<tool_call>\n{"name": "list_bookings", "arguments": {}}\n</tool_call>',
    ),
)

NOTES: tuple[Code, ...] = (
    Code(
        "looks_like_a_call",
        "The text, or reasoning that nothing follows, holds what looks like a call of a declared tool, and was not "
        "taken for one: it stands between text or in a thought, is only shown, or is written in no format that was "
        "asked for.",
        "If it was meant as a call, send it as the format asks for.",
        'I would send {"name": "list_bookings", "arguments": {}} now.',
        blocking=False,
    ),
    Code(
        "opener_without_call",
        "A marker that opens a call stands in the text, and no call follows it.",
        "Nothing needs to be done; markers that are only mentioned belong into code.",
        "The tag <tool_call> opens a call.",
        blocking=False,
    ),
    Code(
        "stray_marker",
        "A marker that closes nothing, such as a second close behind a call. It was dropped.",
        "Nothing needs to be done.",
        '<tool_call>{"name": "list_bookings", "arguments": {}}</tool_call></tool_call>',
        blocking=False,
    ),
    Code(
        "rescued",
        "The call was not written in the format that was expected, and was found all the same.",
        "Nothing needs to be done; naming the right format is cheaper.",
        '{"name": "list_bookings", "arguments": {}}',
        "qwen3_coder",
        blocking=False,
    ),
    Code(
        "call_in_reasoning",
        "The call stood in the reasoning of a reply that has nothing else.",
        "Nothing needs to be done; `reasoning=` says how reasoning is to be read.",
        '<think>\n<tool_call>\n{"name": "list_bookings", "arguments": {}}\n</tool_call>\n</think>',
        blocking=False,
    ),
    Code(
        "call_in_text",
        "The answer has calls of its own, and its text shows one too; that one stays text.",
        "Nothing needs to be done.",
        '{"role": "assistant", "content": "<tool_call>{\\"name\\": \\"list_bookings\\"}</tool_call>", "tool_calls": '
        '[{"id": "call_1", "type": "function", "function": {"name": "list_bookings", "arguments": "{}"}}]}',
        blocking=False,
    ),
)

GROUPS: dict[str, tuple[Code, ...]] = {
    "The name": NAMES,
    "The arguments": ARGUMENTS,
    "Cut off, or too much": CUT,
    "The text of a call": SYNTAX,
    "The contract's protocol": CONTRACT,
    "The provider's answer": ANSWERS,
    "The contract": PROTOCOL,
    "The reasoning": REASONING,
    "Notes": NOTES,
}
# What no model can mend: the server's own, which is not told to the model.
OF_SERVERS = frozenset(code.code for code in ANSWERS) - {"call_not_object"}
CODES: dict[str, Code] = {code.code: code for group in GROUPS.values() for code in group}
