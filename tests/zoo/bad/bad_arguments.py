"""Arguments that are not the text of a JSON object, as they crash servers and clients; nested values that are encoded
twice; values of the wrong type; and empty text where clients need "{}"."""

from __future__ import annotations

import json

from zoo.bad_server import ALL, BadServer
from zoo.question import Json, Question
from zoo.script import Output, fill_arguments
from zoo.spoiling import each_call, raw, until_feedback

TEXT = ("chat", "responses", "messages")


def broken_arguments_server(name: str, write: object, symptom: str, reports: str, **more: object) -> BadServer:
    given = {"apis": TEXT, **more}
    return BadServer(name, "broken_arguments", symptom, output=raw(write), reports=reports, **given)  # type: ignore[arg-type]


def write_unescaped(given: Json) -> str:
    """Write a line break inside a string without escaping it."""
    return json.dumps({**given, "content": "one\ntwo"}).replace("\\n", "\n")


def write_two_lines(output: Output, question: Question) -> Output:
    """Call the tool that writes, with two lines."""
    if not any(tool.name == "write_file" for tool in question.tools):
        return output
    call = output.call._replace(name="write_file", arguments={"path": question.file, "content": "one\ntwo"})
    return output._replace(calls=(call,))


# -- changes of the intended call --------------------------------------------------------------------------------------


def add_optional_arguments(output: Output, question: Question) -> Output:
    """Add the optional arguments: numbers, booleans, arrays, objects."""
    tool = next(tool for tool in question.tools if tool.name == output.call.name)
    more = fill_arguments(tool.schema, question.file, f"cat {question.file}", optional=True)
    return output._replace(calls=(output.call._replace(arguments={**more, **output.call.arguments}),))


def value_as_text(value: object) -> object:
    if isinstance(value, bool) or value is None:
        return str(value)
    return str(value) if isinstance(value, int | float) else value


def write_values_as_text(given: Json) -> str:
    return json.dumps({key: value_as_text(value) for key, value in given.items()})


def write_nested_as_text(given: Json) -> str:
    packed = {key: json.dumps(value) if isinstance(value, list | dict) else value for key, value in given.items()}
    return json.dumps(packed)


def add_nested_arguments(output: Output, question: Question) -> Output:
    call = add_optional_arguments(output, question).call
    return output._replace(
        calls=(call._replace(arguments={**call.arguments, "where": {"depth": 2}, "tags": ["a", "b"]}),)
    )


def clear_arguments(output: Output, question: Question) -> Output:
    return output._replace(calls=tuple([call._replace(arguments={}) for call in output.calls]))


def set_arguments_to_null(entry: Json, api: str, count: int) -> None:
    holder = entry.get("function", entry)
    holder[
        {"chat": "arguments", "responses": "arguments", "messages": "input", "ollama": "arguments"}.get(api, "args")
    ] = None


def remove_arguments(entry: Json, api: str, count: int) -> None:
    holder = entry.get("function", entry)
    holder.pop("input" if api == "messages" else "arguments", None)


SERVERS = [
    broken_arguments_server(
        "python_arguments", repr, "arguments that json.loads refuses", "open-webui/open-webui#21983"
    ),
    broken_arguments_server(
        "fenced_arguments",
        lambda given: f"```json\n{json.dumps(given)}\n```",
        "arguments that json.loads refuses",
        "ggml-org/llama.cpp#14051",
    ),
    BadServer(
        "open_arguments",
        "broken_arguments",
        "a JSONDecodeError that ends the stream",
        result="the call that the model made when it was told",
        apis=TEXT,
        output=until_feedback(raw(lambda given: json.dumps(given).removesuffix("}"))),
        reports="ggml-org/llama.cpp#13825 open-webui/open-webui#21983",
    ),
    broken_arguments_server(
        "unescaped_arguments",
        write_unescaped,
        "invalid control characters in the arguments",
        "ggml-org/llama.cpp#16465 ggml-org/llama.cpp#22072",
        intent=write_two_lines,
    ),
    broken_arguments_server(
        "object_arguments",
        dict,
        "an object where a text is wanted",
        "ggml-org/llama.cpp#14051",
        apis=("chat", "responses"),
    ),
    broken_arguments_server(
        "text_arguments",
        json.dumps,
        "a text where an object is wanted",
        "ggml-org/llama.cpp#14051",
        apis=("ollama", "gemini"),
    ),
    broken_arguments_server(
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
        intent=add_nested_arguments,
        output=lambda output, question: raw(
            write_nested_as_text if question.api in TEXT else lambda given: json.loads(write_nested_as_text(given))
        )(output, question),
        reports="anomalyco/opencode#8249 earendil-works/pi#9569 MoonshotAI/kimi-cli#2513",
    ),
    BadServer(
        "words_for_numbers",
        "wrong_types",
        'values of the wrong type: "1" for 1, and "False", which is true',
        apis=ALL,
        intent=add_optional_arguments,
        output=lambda output, question: raw(
            write_values_as_text if question.api in TEXT else lambda given: json.loads(write_values_as_text(given))
        )(output, question),
        reports="vllm-project/vllm#36032 sgl-project/sglang#27640 ollama/ollama#12621",
    ),
    BadServer(
        "empty_arguments",
        "empty_arguments",
        "json.loads('') fails for a tool that takes nothing",
        apis=("chat", "responses"),
        scene="no_arguments",
        output=raw(lambda given: ""),
        reports="vllm-project/vllm#19419 langchain-ai/langchain#27602 simonw/llm#1164",
    ),
    BadServer(
        "null_arguments",
        "empty_arguments",
        "null where the SDK's model wants a text or an object",
        apis=("chat", "responses", "messages", "ollama", "gemini"),
        modes=("whole",),
        scene="no_arguments",
        damage=each_call(set_arguments_to_null),
        reports="pydantic/pydantic-ai#822 agno-agi/agno#10254",
    ),
    BadServer(
        "missing_arguments",
        "empty_arguments",
        "a call without the key that holds its arguments",
        apis=("chat", "responses", "messages"),
        modes=("whole",),
        scene="no_arguments",
        damage=each_call(remove_arguments),
        reports="langchain-ai/langchain#34190 NousResearch/hermes-agent#87900",
    ),
]
