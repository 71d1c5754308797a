"""Arguments that are no JSON object in a text, in the ways that crash servers and clients; nested ones that are encoded
twice; values of the wrong type; and nothing at all where clients want "{}"."""

from __future__ import annotations

import json

from zoo.bad_server import ALL, BadServer
from zoo.question import Json, Question
from zoo.script import Said, filled
from zoo.spoiling import each_call, raw, until_told

TEXT = ("chat", "responses", "messages")


def written(name: str, write: object, saw: str, reports: str, **more: object) -> BadServer:
    given = {"apis": TEXT, **more}
    return BadServer(name, "broken_arguments", saw, says=raw(write), reports=reports, **given)  # type: ignore[arg-type]


def unescaped(given: Json) -> str:
    """A line break inside a string, as it is."""
    return json.dumps({**given, "content": "one\ntwo"}).replace("\\n", "\n")


def writes_lines(said: Said, question: Question) -> Said:
    """A call of the tool that writes, with two lines."""
    if not any(tool.name == "write_file" for tool in question.tools):
        return said
    call = said.call._replace(name="write_file", arguments={"path": question.file, "content": "one\ntwo"})
    return said._replace(calls=(call,))


# -- as they were meant ------------------------------------------------------------------------------------------------


def rich(said: Said, question: Question) -> Said:
    """With the arguments that need not be there: numbers, booleans, lists, objects."""
    tool = next(tool for tool in question.tools if tool.name == said.call.name)
    more = filled(tool.schema, question.file, f"cat {question.file}", optional=True)
    return said._replace(calls=(said.call._replace(arguments={**more, **said.call.arguments}),))


def as_words(value: object) -> object:
    if isinstance(value, bool) or value is None:
        return str(value)
    return str(value) if isinstance(value, int | float) else value


def worded(given: Json) -> str:
    return json.dumps({key: as_words(value) for key, value in given.items()})


def nested_as_text(given: Json) -> str:
    packed = {key: json.dumps(value) if isinstance(value, list | dict) else value for key, value in given.items()}
    return json.dumps(packed)


def with_nested(said: Said, question: Question) -> Said:
    call = rich(said, question).call
    return said._replace(
        calls=(call._replace(arguments={**call.arguments, "where": {"depth": 2}, "tags": ["a", "b"]}),)
    )


def nothing_meant(said: Said, question: Question) -> Said:
    return said._replace(calls=tuple([call._replace(arguments={}) for call in said.calls]))


def null_arguments(entry: Json, api: str, count: int) -> None:
    held = entry.get("function", entry)
    held[
        {"chat": "arguments", "responses": "arguments", "messages": "input", "ollama": "arguments"}.get(api, "args")
    ] = None


def no_arguments(entry: Json, api: str, count: int) -> None:
    held = entry.get("function", entry)
    held.pop("input" if api == "messages" else "arguments", None)


SERVERS = [
    written("python_arguments", repr, "arguments that json.loads refuses", "open-webui/open-webui#21983"),
    written(
        "fenced_arguments",
        lambda given: f"```json\n{json.dumps(given)}\n```",
        "arguments that json.loads refuses",
        "ggml-org/llama.cpp#14051",
    ),
    BadServer(
        "open_arguments",
        "broken_arguments",
        "a JSONDecodeError that ends the stream",
        sees="the call that the model made when it was told",
        apis=TEXT,
        says=until_told(raw(lambda given: json.dumps(given).removesuffix("}"))),
        reports="ggml-org/llama.cpp#13825 open-webui/open-webui#21983",
    ),
    written(
        "unescaped_arguments",
        unescaped,
        "invalid control characters in the arguments",
        "ggml-org/llama.cpp#16465 ggml-org/llama.cpp#22072",
        means=writes_lines,
    ),
    written(
        "object_arguments",
        dict,
        "an object where a text is wanted",
        "ggml-org/llama.cpp#14051",
        apis=("chat", "responses"),
    ),
    written(
        "text_arguments",
        json.dumps,
        "a text where an object is wanted",
        "ggml-org/llama.cpp#14051",
        apis=("ollama", "gemini"),
    ),
    written(
        "arguments_twice",
        lambda given: json.dumps(json.dumps(given)),
        "a text in place of the arguments",
        "tashfeenahmed/freellmapi#794",
    ),
    BadServer(
        "double_encoded",
        "double_encoded",
        '"[...]" where a list is declared: the tool fails, or gets a text',
        apis=ALL,
        means=with_nested,
        says=lambda said, question: raw(
            nested_as_text if question.api in TEXT else lambda given: json.loads(nested_as_text(given))
        )(said, question),
        reports="anomalyco/opencode#8249 earendil-works/pi#9569 MoonshotAI/kimi-cli#2513",
    ),
    BadServer(
        "words_for_numbers",
        "wrong_types",
        'values of the wrong type: "1" for 1, and "False", which is true',
        apis=ALL,
        means=rich,
        says=lambda said, question: raw(worded if question.api in TEXT else lambda given: json.loads(worded(given)))(
            said, question
        ),
        reports="vllm-project/vllm#36032 sgl-project/sglang#27640 ollama/ollama#12621",
    ),
    BadServer(
        "empty_arguments",
        "empty_arguments",
        "json.loads('') fails for a tool that takes nothing",
        apis=("chat", "responses"),
        scene="no_arguments",
        says=raw(lambda given: ""),
        reports="vllm-project/vllm#19419 langchain-ai/langchain#27602 simonw/llm#1164",
    ),
    BadServer(
        "null_arguments",
        "empty_arguments",
        "null where the SDK's model wants a text or an object",
        apis=("chat", "responses", "messages", "ollama", "gemini"),
        ways=("whole",),
        scene="no_arguments",
        spoils=each_call(null_arguments),
        reports="pydantic/pydantic-ai#822 agno-agi/agno#10254",
    ),
    BadServer(
        "missing_arguments",
        "empty_arguments",
        "a call without the key that holds its arguments",
        apis=("chat", "responses", "messages"),
        ways=("whole",),
        scene="no_arguments",
        spoils=each_call(no_arguments),
        reports="langchain-ai/langchain#34190 NousResearch/hermes-agent#87900",
    ),
]
