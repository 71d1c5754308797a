"""The questions that a server is asked, as data, and their request bodies in every dialect.

    question_body(QUESTIONS["plain"], "messages", "m", stream=True, sending=Sending())

A body is what a client would send, with nothing repaired. `refused` is the class of failure if the server rejects the
request.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from rightcall.api_names import Api
from rightcall.backends.profiles import UNKNOWN
from rightcall.backends.request import Request
from rightcall.backends.request_body import write_body
from rightcall.backends.request_plan import ModeChoice, make_plan
from rightcall.doctor.server_answers import ClientCall, StrictClientAnswer
from rightcall.providers.openai_chat import CHAT
from rightcall.providers.sdk_view import obj, objects, text
from rightcall.providers.sniff import DIALECTS
from rightcall.types import Call, Json, Tool

Way = Literal["whole", "streamed"]
BOTH: tuple[Way, ...] = ("whole", "streamed")
WHOLE: tuple[Way, ...] = ("whole",)
TOOL_APIS: tuple[Api, ...] = ("chat", "responses", "messages", "ollama", "gemini")


class ServerQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """One request, the same in every dialect.

    - `name`: its name.
    - `messages`: the messages in OpenAI chat form.
    - `tools`, `choice`, `max_tokens`, `sampling`: as in a `Request`.
    - `extra`: fields that are added to the body unchanged, by dialect.
    - `refused`: the class of failure if the server rejects the request; empty if it may do so.
    - `ways`: whole, streamed or both.
    - `apis`: the dialects that have such a request.
    - `once`: it is sent once, and not `n` times.
    - `follows`: it continues the conversation after the answer to `plain`: with everything that the server sent
      (`kept`), or without its reasoning (`dropped`).
    """

    name: str
    messages: list[Json]
    tools: tuple[Tool, ...] = ()
    choice: str = "auto"
    max_tokens: int = 512
    sampling: Json = {}
    extra: dict[Api, Json] = {}
    refused: str = "no_native_tools"
    ways: tuple[Way, ...] = BOTH
    apis: tuple[Api, ...] = TOOL_APIS
    once: bool = False
    follows: Literal["", "kept", "dropped"] = ""


def _user(text: Any) -> Json:
    return {"role": "user", "content": text}


def _object(required: str, **properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": required.split()}


_STRING, _INTEGER = {"type": "string"}, {"type": "integer"}
WEATHER = Tool(
    name="get_weather",
    description="Tells the weather of a city for the next days.",
    parameters=_object("city", city={**_STRING, "description": "The name of the city"}, days=_INTEGER),
)
PING = Tool(name="ping", description="Checks that the service is up. Takes no arguments.", parameters=_object(""))
BOOK = Tool(
    name="book_trip",
    description="Books a trip for several people.",
    parameters=_object(
        "route travellers",
        route=_object("start end", start=_STRING, end=_STRING),
        travellers={"type": "array", "items": _object("name age", name=_STRING, age=_INTEGER)},
    ),
)
WRITE = Tool(
    name="write_file",
    description="Writes a text to a file.",
    parameters=_object("path content", path=_STRING, content=_STRING),
)
OPTIONS = Tool(
    name="set_options",
    description="Sets the options of a parcel.",
    parameters=_object(
        "level zip fragile count weight",
        level={"type": "string", "enum": ["low", "high"]},
        zip={**_STRING, "description": "Five digits, with leading zeros"},
        fragile={"type": ["boolean", "null"]},
        count={"anyOf": [{"type": "integer"}, {"type": "null"}]},
        weight={"type": "number"},
    ),
)
HARD = Tool(
    name="send_mail",
    description="Sends a mail.",
    parameters={
        "$defs": {"address": {"type": "string", "format": "email", "pattern": r"^(?!\.)[^@\s]+@[^@\s]+$"}},
        **_object(
            "to body",
            to={"$ref": "#/$defs/address"},
            body={"type": "string", "minLength": 1, "maxLength": 10000},
            tags={"type": "array", "items": _STRING, "maxItems": 2000, "uniqueItems": True},
        ),
    },
)
DOTTED = Tool(
    name="files.read_the_first_lines_of_a_text_file_that_the_user_has_opened_in_the_editor",
    description="Reads a file.",
    parameters=_object("path", path=_STRING),
)
PREFIXED = Tool(name="mcp__files__read_file", description="Reads a file.", parameters=_object("path", path=_STRING))
LONG_WORDS = " ".join([f"w{number}" for number in range(1, 61)])
MARK = "zebra"
FILLER_WORDS = 6000
_FILLER = " ".join(["north south east west up down left right"] * (FILLER_WORDS // 8))
_CONSTRAINT: Json = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "strict": True,
        "schema": {
            **_object("animal", animal={"type": "string", "enum": [MARK]}),
            "additionalProperties": False,
        },
    },
}
_PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJg"
    "gg=="
)


_ID = "Zk3bQ9xw1"  # of a form that every server accepts
_OWN_ID = "call_Zk3bQ9xw1Zk3bQ9xw1Zk3bQ9xw1Zk3bQ9xw1"  # of the form that many servers generate


def _assistant_call(arguments: str = '{"city": "Oslo"}', content: Any = "", id: str = _ID) -> Json:
    """Return an assistant message with one call of get_weather with these arguments."""
    call = {"id": id, "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    return {"role": "assistant", "content": content, "tool_calls": [call]}


def _tool_result(content: Any = "rain, 9 degrees", id: str = _ID) -> Json:
    return {"role": "tool", "tool_call_id": id, "content": content}


# The prompts contain the arguments, so that a small model seldom fails to choose the right ones.
_ASK = 'What is the weather? Call the tool get_weather with {"city": "Oslo"}.'
_LONG = f'Call the tool write_file with {{"path": "notes.txt", "content": "{LONG_WORDS}"}}.'
_PREFIXED_ASK = 'Call the tool mcp__files__read_file with {"path": "notes.txt"}.'
_TRIP = {
    "route": {"start": 'Malmö "C"', "end": "北京"},
    "travellers": [{"name": "Zoë 🎉", "age": 30}, {"name": "Bob \\ O'Neil", "age": 41}],
}
_OPTION_VALUES = {"level": "high", "zip": "02134", "fragile": False, "count": None, "weight": 2.5}
_CLIENT_FIELDS: dict[Api, Json] = {
    "chat": {"parallel_tool_calls": True, "store": False, "user": "doctor", "metadata": {"by": "doctor"}},
    "responses": {"parallel_tool_calls": True, "store": False, "include": [], "prompt_cache_key": "doctor"},
    "messages": {"metadata": {"user_id": "doctor"}},
    "ollama": {"keep_alive": "5m"},
}
_UNKNOWN: dict[Api, Json] = {api: {"x_field_nobody_knows": 1} for api in TOOL_APIS}
_FUNCTION: Json = {
    "name": WEATHER.name,
    "description": WEATHER.description,
    "parameters": {**_object("city", city=_STRING), "additionalProperties": False},
    "strict": True,
}
_STRICT: dict[Api, Json] = {
    "chat": {"tools": [{"type": "function", "function": _FUNCTION}]},
    "responses": {"tools": [{"type": "function", **_FUNCTION}]},
}
_OTHER_TOOLS: list[Json] = [
    {"type": "function", "name": "get_weather", "parameters": WEATHER.parameters, "strict": False},
    {"type": "web_search"},
    {"type": "custom", "name": "apply_patch", "description": "Edits files.", "format": {"type": "text"}},
]

BARE = ServerQuestion(
    name="bare", messages=[_user("Say hello.")], max_tokens=32, refused="", apis=(*TOOL_APIS, "completions")
)
PLAIN = ServerQuestion(name="plain", messages=[_user(_ASK)], tools=(WEATHER,))
_LIST = (
    BARE,
    PLAIN,
    ServerQuestion(name="toolless", messages=[_user(_ASK)], max_tokens=16, refused="", ways=WHOLE, once=True),
    ServerQuestion(
        name="no_arguments", messages=[_user("Is the service up? Call the tool ping with {}.")], tools=(PING,)
    ),
    ServerQuestion(
        name="nested",
        messages=[_user(f"Call the tool book_trip with {json.dumps(_TRIP, ensure_ascii=False)}.")],
        tools=(BOOK,),
        refused="schema_kills_grammar",
    ),
    ServerQuestion(name="long", messages=[_user(_LONG)], tools=(WRITE,), max_tokens=1024),
    ServerQuestion(
        name="types",
        messages=[_user(f"Call the tool set_options with {json.dumps(_OPTION_VALUES)}.")],
        tools=(OPTIONS,),
        refused="schema_kills_grammar",
    ),
    ServerQuestion(
        name="parallel",
        messages=[
            _user('Make two calls at once: get_weather with {"city": "Oslo"} and get_weather with {"city": "Rome"}.')
        ],
        tools=(WEATHER,),
    ),
    ServerQuestion(name="required", messages=[_user("Say hello.")], tools=(WEATHER,), choice="required"),
    ServerQuestion(name="named", messages=[_user(_ASK)], tools=(WEATHER, PING), choice="ping"),
    ServerQuestion(name="none", messages=[_user(_ASK)], tools=(WEATHER,), choice="none"),
    ServerQuestion(
        name="history",
        messages=[_user(_ASK), _assistant_call(), _tool_result()],
        tools=(WEATHER,),
        refused="history_order",
    ),
    ServerQuestion(
        name="kept", messages=[_user(_ASK)], tools=(WEATHER,), refused="history_order", ways=WHOLE, follows="kept"
    ),
    ServerQuestion(
        name="dropped",
        messages=[_user(_ASK)],
        tools=(WEATHER,),
        refused="lost_reasoning",
        ways=WHOLE,
        follows="dropped",
    ),
    ServerQuestion(
        name="poisoned",
        messages=[_user(_ASK), _assistant_call('{"city": "Os'), _tool_result("the call could not be read")],
        tools=(WEATHER,),
        refused="poisoned_history",
        ways=WHOLE,
        apis=("chat", "responses"),
        once=True,
    ),
    ServerQuestion(
        name="own_ids",
        messages=[_user(_ASK), _assistant_call(id=_OWN_ID), _tool_result(id=_OWN_ID)],
        tools=(WEATHER,),
        refused="bad_ids",
        ways=WHOLE,
        apis=("chat", "responses", "messages"),
        once=True,
    ),
    ServerQuestion(
        name="null_content",
        messages=[_user(_ASK), _assistant_call(content=None), _tool_result()],
        tools=(WEATHER,),
        refused="history_order",
        ways=WHOLE,
        apis=("chat",),
        once=True,
    ),
    ServerQuestion(
        name="orphan",
        messages=[_user("Hello."), _tool_result(id="Gone00001"), _user(_ASK)],
        tools=(WEATHER,),
        refused="history_order",
        ways=WHOLE,
        apis=("chat", "responses", "messages"),
        once=True,
    ),
    ServerQuestion(
        name="same_role",
        messages=[_user("Hello."), _user("Are you there?"), _user(_ASK)],
        tools=(WEATHER,),
        refused="history_order",
        ways=WHOLE,
        once=True,
    ),
    ServerQuestion(
        name="result_parts",
        messages=[_user(_ASK), _assistant_call(), _tool_result([{"type": "text", "text": "rain, 9 degrees"}])],
        tools=(WEATHER,),
        refused="refused_results",
        ways=WHOLE,
        apis=("chat",),
        once=True,
    ),
    ServerQuestion(
        name="cut",
        messages=[_user(_LONG)],
        tools=(WRITE,),
        max_tokens=40,
    ),
    ServerQuestion(
        name="filler",
        messages=[_user(f"{_FILLER}\n\n{_ASK}")],
        tools=(WEATHER,),
        max_tokens=16,
        refused="",
        ways=WHOLE,
        once=True,
    ),
    ServerQuestion(
        name="constraint",
        messages=[_user("Say hello.")],
        sampling={"response_format": _CONSTRAINT},
        refused="",
        ways=WHOLE,
    ),
    ServerQuestion(
        name="hard_schema", messages=[_user(_ASK)], tools=(WEATHER, HARD), refused="schema_kills_grammar", ways=WHOLE
    ),
    ServerQuestion(
        name="strict",
        messages=[_user(_ASK)],
        tools=(WEATHER,),
        choice="required",
        extra=_STRICT,
        refused="refused_fields",
        ways=WHOLE,
        apis=tuple(_STRICT),
    ),
    ServerQuestion(name="prefixed", messages=[_user(_PREFIXED_ASK)], tools=(PREFIXED,), ways=WHOLE),
    ServerQuestion(
        name="client_fields",
        messages=[_user(_ASK)],
        tools=(WEATHER,),
        extra=_CLIENT_FIELDS,
        refused="refused_fields",
        ways=WHOLE,
        apis=tuple(_CLIENT_FIELDS),
        once=True,
    ),
    ServerQuestion(
        name="unknown_field",
        messages=[_user(_ASK)],
        tools=(WEATHER,),
        extra=_UNKNOWN,
        refused="refused_fields",
        ways=WHOLE,
        once=True,
    ),
    ServerQuestion(
        name="empty_tools",
        messages=[_user("Say hello.")],
        max_tokens=32,
        extra={api: {"tools": []} for api in TOOL_APIS},
        refused="refused_fields",
        ways=WHOLE,
        once=True,
    ),
    ServerQuestion(
        name="other_tools",
        messages=[_user(_ASK)],
        tools=(WEATHER,),
        extra={"responses": {"tools": _OTHER_TOOLS}},
        refused="bad_translation",
        ways=WHOLE,
        apis=("responses",),
        once=True,
    ),
    ServerQuestion(
        name="tool_names",
        messages=[_user(_ASK)],
        tools=(WEATHER, DOTTED),
        refused="refused_names",
        ways=WHOLE,
        once=True,
    ),
    ServerQuestion(
        name="image",
        messages=[
            _user([{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": _PIXEL}}])
        ],
        max_tokens=32,
        refused="",
        ways=WHOLE,
        once=True,
    ),
)
QUESTIONS: dict[str, ServerQuestion] = {each.name: each for each in _LIST}


LISTS: dict[Api, str] = {
    "chat": "messages",
    "responses": "input",
    "messages": "messages",
    "ollama": "messages",
    "gemini": "contents",
}
_RESULT = "rain, 9 degrees"
_REASONING = ("reasoning_content", "reasoning", "reasoning_details", "thinking", "extra_content")


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """How to send requests to a server: the name of the field that limits an answer, and the temperature, if
    accepted."""

    max_tokens: str = "max_tokens"
    temperature: float | None = 0.0


def question_body(question: ServerQuestion, api: Api, model: str, *, stream: bool, sending: Sending) -> Json:
    """Return the request body of a question as a client would send it to this model in this dialect, nothing repaired:
    names of tools and the messages of a history stay as the question has them."""
    request = Request(
        messages=question.messages,
        tools=list(question.tools) or None,
        choice=question.choice,
        max_tokens=question.max_tokens,
        temperature=sending.temperature,
        sampling=question.sampling,
        extra=question.extra.get(api, {}),
    )
    profile = msgspec.structs.replace(UNKNOWN, max_tokens=sending.max_tokens)
    plan = make_plan(request, ModeChoice("native", profile), api, model, stream=stream)
    body = write_body(plan)
    if api == "chat":
        body["messages"] = question.messages
    elif api == "responses":
        _restore_arguments(body, question)
    for tool in question.tools:
        if (name := plan.naming.server_name(tool.name)) != tool.name:
            body = json.loads(json.dumps(body).replace(json.dumps(name), json.dumps(tool.name)))
    return body


def _restore_arguments(body: Json, question: ServerQuestion) -> None:
    """Replace the arguments of the calls in the history of a Responses body by those of the question, in place, also if
    they are not JSON."""
    calls = [call for message in question.messages for call in objects(message.get("tool_calls"))]
    items = [item for item in objects(body.get("input")) if item.get("type") == "function_call"]
    for item, call in zip(items, calls, strict=True):
        item["arguments"] = call["function"]["arguments"]


def follow_up(body: Json, api: Api, answer: StrictClientAnswer, *, reasoning: bool) -> Json:
    """Return a request body that continues `body`, which is not changed, with the server's turn in `answer` and a
    result for each of its calls.

    With `reasoning`, the turn is sent back as it came; without, its reasoning is removed, as some clients do."""
    turn = answer.turn if reasoning else [entry for each in answer.turn for entry in _without_reasoning(each, api)]
    results = [entry for call in answer.calls for entry in _call_results(call, api)]
    if api == "messages":
        results = [{"role": "user", "content": [part for each in results for part in objects(each["content"])]}]
    name = LISTS[api]
    return {**body, name: [*_as_list(body.get(name)), *turn, *results]}


def _as_list(given: Any) -> Sequence[Any]:
    return given if isinstance(given, list) else [{"role": "user", "content": given}]


def _call_results(call: ClientCall, api: Api) -> list[Json]:
    """Return the messages with a fixed result of a call in this dialect, as a list of one."""
    call_made = Call(text(call.name), obj(call.value) or {}, "", id=text(call.id))
    return [DIALECTS.get(api, CHAT).tool_result(call_made, _RESULT)]


def _without_reasoning(entry: Json, api: Api) -> list[Json]:
    """Return an entry of the history without its reasoning, as a list: empty for a reasoning item of Responses. An
    entry of another API is kept, even if nothing is left in it."""
    if api == "responses":
        return [] if entry.get("type") == "reasoning" else [entry]
    if api == "messages":
        blocks = [each for each in objects(entry.get("content")) if "thinking" not in text(each.get("type"))]
        return [{**entry, "content": blocks}]
    if api == "gemini":
        parts = [_without_signature(each) for each in objects(entry.get("parts")) if each.get("thought") is not True]
        return [{**entry, "parts": parts}]
    plain = {key: value for key, value in entry.items() if key not in _REASONING}
    if isinstance(plain.get("tool_calls"), list):
        plain["tool_calls"] = [_basic_call(each) for each in objects(plain["tool_calls"])]
    return [plain]


def _basic_call(call: Json) -> Json:
    return {key: value for key, value in call.items() if key in ("id", "type", "function")}


def _without_signature(part: Json) -> Json:
    return {key: value for key, value in part.items() if key not in ("thoughtSignature", "thought_signature")}
