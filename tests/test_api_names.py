"""Every place that takes an API name accepts the same names, and aliases give the same results."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rightcall import Reply, Stream, Toolset, answers, parse, read
from rightcall.api_names import ALIASES, APIS
from rightcall.backends import Backend
from rightcall.datasets.logs import resolve_log_kind
from rightcall.errors import CallerError

ROOT = Path(__file__).resolve().parent.parent
CALL = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
TOOLS = Toolset({"name": "f.g", "parameters": {"type": "object"}})
ANSWER = {"role": "assistant", "content": CALL}


def results_by_place(api: str) -> list[str]:
    """Return the result or the error of every function that takes an API name."""
    reply = parse(CALL, format="hermes")
    functions_by_place: dict[str, Callable[[], str]] = {
        "message": lambda: json.dumps(reply.message(api)).replace(reply.calls[0].id, "id"),
        "answers": lambda: json.dumps(answers(reply, api=api)).replace(reply.calls[0].id, "id"),
        "definitions": lambda: json.dumps(TOOLS.definitions(api)),
        "wire": lambda: json.dumps(TOOLS.wire_names(api)),
        "read": lambda: str(len(read(ANSWER, api=api).calls)),
        "stream": lambda: str(Stream(api).close()),
        "backend": lambda: Backend("http://127.0.0.1:1", api=api, environ={}).api,
        "log": lambda: resolve_log_kind(api),
    }
    results = []
    for name, make in functions_by_place.items():
        try:
            results.append(f"{name} {make()}")
        except CallerError as error:
            results.append(f"{name} {re.sub(repr(api), '', str(error))}")
    return results


@pytest.mark.parametrize("alias", [*ALIASES, "OpenAI", "openai-chat", "openai-responses"])
def test_an_alias_of_an_api_gives_the_same_results_as_its_name(alias: str) -> None:
    assert [each.partition("(did")[0] for each in results_by_place(alias)] == [
        each.partition("(did")[0] for each in results_by_place(ALIASES[alias.lower().replace("-", "_")])
    ]


@pytest.mark.parametrize(
    "make", [Reply().message, TOOLS.definitions, lambda api: read({}, api=api), Stream, resolve_log_kind]
)
def test_unknown_api_name_is_rejected_with_a_list_of_known_names(make: Callable[[str], object]) -> None:
    with pytest.raises(CallerError, match=r"chat.*responses"):
        make("azure")


def test_read_and_stream_accept_every_api_name() -> None:
    for api in APIS:
        assert read("", api=api).parts == () and Stream(api).close() == []
    whole = {"object": "text_completion", "choices": [{"index": 0, "text": CALL, "finish_reason": "stop"}]}
    stream = Stream("completions")
    stream.feed(whole)
    stream.close()
    for reply in (read(whole), read(whole, api="completions"), stream.reply):
        assert ([call.name for call in reply.calls], reply.api, reply.finish) == (["f"], "chat", "stop")


def test_documentation_passes_canonical_api_names() -> None:
    """`openai` and `anthropic` are SDKs and servers; a document that passes an API uses its canonical name."""
    given = re.compile(r"""(?:api=|--api |--to |definitions\(|message\(|Stream\()["']?([a-z_-]+)["']?""")
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.py")]
    found = {word for page in pages for word in given.findall(page.read_text("utf-8"))}
    assert not found & {*ALIASES, *[alias.replace("_", "-") for alias in ALIASES]} and {*APIS} & found
