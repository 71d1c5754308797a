"""What a server is asked, as data: each question is one request, the same in every dialect.

    ServerQuestion("plain", _weather("What is the weather in Oslo?"))

`refused` is the class of failure that it is when the server does not take the request at all.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec

from rightcall.api_names import Api
from rightcall.types import Json, Tool

Way = Literal["whole", "streamed"]
BOTH: tuple[Way, ...] = ("whole", "streamed")
WHOLE: tuple[Way, ...] = ("whole",)
TOOL_APIS: tuple[Api, ...] = ("chat", "responses", "messages", "ollama", "gemini")


class ServerQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """One request.

    - `name`: its name.
    - `messages`: in the shape of Chat.
    - `tools`, `choice`, `max_tokens`, `sampling`: as in a `Request`.
    - `extra`: fields that go into the body as they are, by dialect.
    - `refused`: the class of failure, if the server refuses the request; empty where it may.
    - `ways`: whole, streamed or both.
    - `apis`: the dialects in which there is such a request.
    - `once`: it is not asked `n` times.
    - `follows`: it goes on from the answer to `plain`, as a client does: with all that the server gave (`kept`), or
      without its reasoning (`dropped`).
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


_ID = "Zk3bQ9xw1"  # of a shape that every server takes
_OWN_ID = "call_Zk3bQ9xw1Zk3bQ9xw1Zk3bQ9xw1Zk3bQ9xw1"  # as many servers mint them


def _called(arguments: str = '{"city": "Oslo"}', content: Any = "", id: str = _ID) -> Json:
    call = {"id": id, "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    return {"role": "assistant", "content": content, "tool_calls": [call]}


def _result(content: Any = "rain, 9 degrees", id: str = _ID) -> Json:
    return {"role": "tool", "tool_call_id": id, "content": content}


# Arguments are spelled out, so that what a small model gets wrong is seldom its choice of words.
_ASK = 'What is the weather? Call the tool get_weather with {"city": "Oslo"}.'
_LONG = f'Call the tool write_file with {{"path": "notes.txt", "content": "{LONG_WORDS}"}}.'
_PREFIXED_ASK = 'Call the tool mcp__files__read_file with {"path": "notes.txt"}.'
_TRIP = {
    "route": {"start": 'Malmö "C"', "end": "北京"},
    "travellers": [{"name": "Zoë 🎉", "age": 30}, {"name": "Bob \\ O'Neil", "age": 41}],
}
_CHOICES = {"level": "high", "zip": "02134", "fragile": False, "count": None, "weight": 2.5}
_FIELDS: dict[Api, Json] = {
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
        messages=[_user(f"Call the tool set_options with {json.dumps(_CHOICES)}.")],
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
        messages=[_user(_ASK), _called(), _result()],
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
        messages=[_user(_ASK), _called('{"city": "Os'), _result("the call could not be read")],
        tools=(WEATHER,),
        refused="poisoned_history",
        ways=WHOLE,
        apis=("chat", "responses"),
        once=True,
    ),
    ServerQuestion(
        name="own_ids",
        messages=[_user(_ASK), _called(id=_OWN_ID), _result(id=_OWN_ID)],
        tools=(WEATHER,),
        refused="bad_ids",
        ways=WHOLE,
        apis=("chat", "responses", "messages"),
        once=True,
    ),
    ServerQuestion(
        name="null_content",
        messages=[_user(_ASK), _called(content=None), _result()],
        tools=(WEATHER,),
        refused="history_order",
        ways=WHOLE,
        apis=("chat",),
        once=True,
    ),
    ServerQuestion(
        name="orphan",
        messages=[_user("Hello."), _result(id="Gone00001"), _user(_ASK)],
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
        messages=[_user(_ASK), _called(), _result([{"type": "text", "text": "rain, 9 degrees"}])],
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
        extra=_FIELDS,
        refused="refused_fields",
        ways=WHOLE,
        apis=tuple(_FIELDS),
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
