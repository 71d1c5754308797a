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
    """Return the text of one call in the format hermes; `arguments` is inserted as it is."""
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
        "No tool of that name is declared. The message lists the most similar names.",
        "Send one of the declared names; or declare the tool.",
        _hermes_call('{"city": "Oslo"}', "cancel"),
    ),
    Code(
        "names_disagree",
        "The call names two different tools: one in the text before it, another in the call itself.",
        "Send the name of the intended tool in both places.",
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
        "A tool definition cannot be used: it was left out, and calls of it are `unknown_tool`. In `Toolset.notes`.",
        "Correct the definition; the message names the place of the fault and what to write instead.",
        blocking=False,
    ),
    Code(
        "tool_mended",
        'A keyword of a tool definition has an invalid value with one plausible meaning (`"type": "float"`), which is '
        "used instead. In `Toolset.notes`.",
        "Write the value that is used; the message names it.",
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
        "The tool does not declare this argument, and its schema allows no undeclared ones.",
        "Send only the arguments that the message lists.",
        _hermes_call('{"city": "Oslo", "pets": 1}'),
    ),
    Code(
        "wrong_type",
        "A value has another type than its schema requires.",
        "Send a value of the type that the message names.",
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
        "A value matches none (`anyOf`), or not exactly one (`oneOf`), of the alternatives. If one of them was clearly "
        "intended, the problem with that one is reported instead.",
        "Send a value of one of the declared shapes.",
        _hermes_call('{"city": "Oslo", "price": [10]}'),
    ),
    Code(
        "out_of_range",
        "A number is below the minimum, above the maximum, or not a multiple that the schema allows.",
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
        "The arguments violate another rule of the schema; the message quotes the rule.",
        "Send arguments that follow the rule.",
        _hermes_call('{"city": "Oslo", "extra": {"pets": true}}'),
    ),
    Code(
        "invalid_argument",
        "The value matches the schema, but the tool's own validation rejects it.",
        "Send a value that the tool accepts; the message says which.",
    ),
    Code(
        "arguments_not_object",
        "The arguments are a string, number or array and not a JSON object.",
        "Send an object with the arguments by name.",
        _hermes_call("[1, 2]"),
    ),
    Code(
        "misplaced_argument",
        "An argument of the tool is next to the arguments instead of inside them, and repair is off (otherwise it is "
        "moved, with the receipt `hoisted_argument`). Or the arguments are a whole call of another tool. Or a call "
        "without arguments has an object under an unknown key.",
        "Send the argument inside the arguments; or send the arguments alone.",
    ),
    Code(
        "unknown_key",
        "The call has a key next to its name and arguments that is no argument of the tool. It is ignored.",
        "Nothing needs to be done; if it is an argument, send it inside the arguments under its declared name.",
        '<tool_call>{"name": "book", "arguments": {"city": "Oslo"}, "reason": "a trip"}</tool_call>',
        blocking=False,
    ),
    Code(
        "arguments_disagree",
        "A call that a program constructed: its `arguments` differ from its argument text `json`, so it is not certain "
        "which of them is right.",
        "Pass one of the two to `Call`: `Call(name, arguments)`, or `repair(Call(name, json=text), tools)`.",
    ),
)

CUT: tuple[Code, ...] = (
    Code(
        "truncated",
        "The text or the stream ended inside the call, or a provider truncated its answer and nothing shows that the "
        "last call is complete. Such a call is never completed.",
        "Request the whole call again, with a higher token limit or shorter arguments.",
        '<tool_call>{"name": "book", "arguments": {"city": "Os',
    ),
    Code(
        "incomplete",
        "`check` received a call that was truncated or could not be parsed (`complete=False`).",
        "Request the call again.",
    ),
    Code(
        "too_large",
        "The reply, one call, the number of calls, or the number of openers without a call exceeds a limit. The text "
        "beyond the limit was not parsed. Or the arguments are too large to be checked against the tool's schema.",
        "Send less; or raise the limit with `Limits`.",
    ),
    Code(
        "too_deep",
        "The arguments are nested deeper than the limit.",
        "Send them with less nesting; or raise the limit with `Limits`.",
        _hermes_call(_DEEP),
    ),
    Code(
        "unclosed",
        "The closing marker of the call is missing; the call itself is complete.",
        "Nothing needs to be done.",
        '<tool_call>{"name": "list_bookings", "arguments": {}}',
        blocking=False,
    ),
    Code(
        "abandoned",
        "The call has no closing marker before something else begins: the model started over, or stopped.",
        "Send the whole call.",
        "<tool_call>\n<function=book>\n<tool_call>\n<function=list_bookings>\n</function>\n</tool_call>",
        "qwen3_coder",
    ),
)

SYNTAX: tuple[Code, ...] = (
    Code(
        "invalid_json",
        "The call or its arguments are not valid JSON, and no repair rule applies.",
        "Send valid JSON. The message names the first invalid character.",
        _hermes_call('{"city": }'),
    ),
    Code(
        "trailing_content",
        "Unexpected content follows the call or its arguments. Text between the end of a call and the closing marker "
        "of the section only gives a note: it stays text.",
        "Send nothing after the call.",
        '[book(city="Oslo" "Bergen")]',
        "pythonic",
    ),
    Code(
        "late_arguments",
        "The server sent more arguments for a call that it had ended. The call stays as it was when it ended.",
        "Nothing needs to be done; a server that does this often loses arguments.",
        blocking=False,
    ),
    Code(
        "unexpected_text",
        "There is text between the arguments that is not an argument.",
        "Send the arguments one after the other, without text between them.",
        "<tool_call>\n<function=book>\nin\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
        "qwen3_coder",
    ),
    Code(
        "invalid_call",
        "A call was opened, and what follows cannot be parsed: its opening tag is damaged, it has another structure "
        "than the format's, or a parenthesis of the call is missing.",
        "Write the call in the syntax of the format.",
        "<tool_call>\n<function name>\nbook\n</function>\n</tool_call>",
        "qwen3_coder",
    ),
    Code(
        "uncertain",
        "The text can be parsed in more than one way, and repairing it would be a guess.",
        "Send the call again, well formed, with every argument in its place.",
        "[book(city='Oslo', guests=[Ann, Bob])]",
        "pythonic",
    ),
    Code(
        "ambiguous_end",
        "An argument that is plain text contains tags of its format, or such tags follow the call, so that the end of "
        "the argument is not certain.",
        "Close each argument and each call, and write no tags of the format inside a value.",
        "<tool_call><function=book><parameter=city>\n</parameter> b <parameter=\n</parameter></function></tool_call>",
        "qwen3_coder",
    ),
    Code(
        "duplicate_argument",
        "An argument is sent twice, or all of them are. In JSON it does not block if both values are equal.",
        "Send it once.",
        '[book(city="Oslo", city="Rome")]',
        "pythonic",
    ),
    Code(
        "duplicate_key",
        "An object in the arguments, or the call around them, has a key twice. In JSON it does not block if both "
        "values are equal.",
        "Send it once.",
        "[book(city='Oslo', extra={'a': 1, 'a': 2})]",
        "pythonic",
    ),
    Code(
        "unclosed_argument",
        "An argument was not closed before the next one. It blocks only if the end of its value is not certain.",
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
        "A value cannot be parsed: it is missing, a list or an object is not closed or lacks commas between its "
        "members, or the key of an object is not a string or has no `:`.",
        "Send a literal: a string in quotes, a number, true, false, null, a list or an object.",
        '[book(city="Oslo", nights=:)]',
        "pythonic",
    ),
    Code(
        "not_finite",
        "A number that JSON cannot represent: NaN, infinity, or too large.",
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
        "The name of an argument is missing or is not a valid name.",
        "Use the declared name.",
        '[book(my city="Oslo")]',
        "pythonic",
    ),
)

CONTRACT: tuple[Code, ...] = (
    Code(
        "several_calls",
        "A block contains more than one call. None of them runs.",
        "Send each call in a separate block.",
        '<tool_call>book({ city: "Oslo" })\nbook({ city: "Rome" })</tool_call>',
        "contract",
    ),
    Code(
        "no_call",
        "A block for a call is empty, or contains something else.",
        "Write one call in it, `name({ key: value })`, or leave it out.",
        "<tool_call></tool_call>",
        "contract",
    ),
    Code(
        "labelled_call",
        "A label and a colon precede the call. It may be an example, so it does not run.",
        "Write the call without a label.",
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
        "The call was outside its block, at the beginning of a line. It runs nevertheless.",
        "Write it into a block.",
        'book({ city: "Oslo" })',
        "contract",
        blocking=False,
    ),
    Code(
        "stray_text",
        "There is text outside all blocks. `feedback` reports it; the reply keeps it as text.",
        "Write it inside a block, or omit it.",
        blocking=False,
    ),
    Code(
        "unknown_tag",
        "There is a tag outside all blocks that the protocol does not define.",
        "Use only the blocks of the protocol.",
        blocking=False,
    ),
    Code(
        "empty_done",
        "The block that reports the end of the task is empty.",
        "Write the agreed text inside it, or omit it.",
        blocking=False,
    ),
    Code(
        "no_blocks",
        "The reply contains only reasoning.",
        "Send a call, or an answer.",
    ),
)

ANSWERS: tuple[Code, ...] = (
    Code(
        "provider_error",
        "The server sent an error where an answer should be.",
        "Read the message; the model did not cause it.",
        '{"error": {"message": "overloaded", "code": 529}}',
    ),
    Code(
        "malformed_response",
        "The response has the structure of no known provider.",
        "Check the server.",
        '{"choices": 3}',
    ),
    Code(
        "malformed_chunk",
        "A chunk of the stream is not valid JSON.",
        "Check the server and the connection; send the request again.",
    ),
    Code(
        "call_not_object",
        "An entry in the list of calls is not an object.",
        "Send each call as an object; if a provider sent it, check the server. The other calls are kept.",
        '{"role": "assistant", "tool_calls": ["book"]}',
    ),
    Code(
        "missing_function",
        "An entry in the list of calls does not say which function it calls.",
        "Check the server; send the request again.",
        '{"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function"}]}',
    ),
    Code(
        "unknown_shape",
        "The input is not an answer of a known provider.",
        "Name the provider with `api=`; or pass the model's text to `parse`.",
        blocking=False,
    ),
)

PROTOCOL: tuple[Code, ...] = (
    Code(
        "ledger_open",
        "The model reports that the task is done, but the task ledger still has open or blocked items.",
        "Finish the listed items, or mark them as dropped with a note that gives the reason.",
    ),
)

REASONING: tuple[Code, ...] = (
    Code(
        "call_in_open_reasoning",
        "The call is inside reasoning that was never closed: the model may only be considering it.",
        'Close the reasoning and send the call after it; or pass `reasoning_calls="never"` to keep it as reasoning.',
        '<think>\n<tool_call>\n{"name": "list_bookings", "arguments": {}}\n</tool_call>',
    ),
)

NOTES: tuple[Code, ...] = (
    Code(
        "looks_like_a_call",
        "The text, or reasoning that nothing follows, resembles a call of a declared tool, and was not parsed as one: "
        "it is surrounded by text, is inside reasoning, is only shown, or is in no format that was requested.",
        "If it is meant as a call, send it in the requested format.",
        'I would send {"name": "list_bookings", "arguments": {}} now.',
        blocking=False,
    ),
    Code(
        "opener_without_call",
        "The text contains the opening marker of a call, and no call follows it.",
        "Nothing needs to be done; write markers that are only mentioned as code.",
        "The tag <tool_call> opens a call.",
        blocking=False,
    ),
    Code(
        "stray_marker",
        "A closing marker without an opener, such as a second one after a call. It was dropped.",
        "Nothing needs to be done.",
        '<tool_call>{"name": "list_bookings", "arguments": {}}</tool_call></tool_call>',
        blocking=False,
    ),
    Code(
        "rescued",
        "The call was not written in the expected format, and was found nevertheless.",
        "Nothing needs to be done; naming the right format is faster.",
        '{"name": "list_bookings", "arguments": {}}',
        "qwen3_coder",
        blocking=False,
    ),
    Code(
        "call_in_reasoning",
        "The call is inside the reasoning of a reply that has nothing else.",
        "Nothing needs to be done; `reasoning=` sets how reasoning is parsed.",
        '<think>\n<tool_call>\n{"name": "list_bookings", "arguments": {}}\n</tool_call>\n</think>',
        blocking=False,
    ),
    Code(
        "call_in_text",
        "The answer has native calls, and its text also shows one; that one stays text.",
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
# Problems that a server causes. A model cannot fix them, so they are not reported to it.
OF_SERVERS = frozenset(code.code for code in ANSWERS) - {"call_not_object"}
CODES: dict[str, Code] = {code.code: code for group in GROUPS.values() for code in group}
