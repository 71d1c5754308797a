"""mode="grammar": request fields that constrain the server's output, and the reading of its answer."""

import asyncio
from typing import Any

import pytest

from rightcall.backends.address import check_api
from rightcall.backends.profiles import PROFILES
from rightcall.backends.request_body import write_body
from rightcall.backends.request_plan import ModeChoice, make_plan
from rightcall.errors import Unsupported
from rightcall.types import Json
from support.loopback import ReceivedRequest, ask, backend, chat, json_answer, serving

WITH_GRAMMAR = [name for name, profile in PROFILES.items() if profile.grammar]
CALL_TEXT = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def body(name: str, choice: str = "required") -> Json:
    api = check_api({"anthropic": "messages", "ollama": "ollama"}.get(name, "chat"))
    plan = make_plan(ask(choice=choice), ModeChoice("grammar", PROFILES[name]), api, "m", stream=False)
    return write_body(plan)


@pytest.mark.parametrize("name", WITH_GRAMMAR)
@pytest.mark.parametrize("choice", ["required", "get_weather"])
def test_every_server_with_a_grammar_gets_it_in_its_own_field(name: str, choice: str) -> None:
    sent = body(name, choice)
    assert set(PROFILES[name].grammar_fields) <= set(sent)


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_server_with_strict_tools_gets_a_native_request(name: str) -> None:
    sent = body(name)
    assert sent["messages"][0] == {"role": "user", "content": "Weather in Oslo?"} and "system" not in sent
    tool = sent["tools"][0].get("function", sent["tools"][0])
    assert tool["strict"] is True and tool["name"] == "get_weather" and sent["tool_choice"]


@pytest.mark.parametrize("name", ["llama.cpp", "vllm", "sglang", "ollama"])
def test_a_server_with_a_text_grammar_gets_the_contract_in_the_prompt(name: str) -> None:
    sent = body(name)
    assert "tools" not in sent and "get_weather" in sent["messages"][0]["content"]


def test_a_server_without_a_grammar_is_rejected() -> None:
    with pytest.raises(Unsupported, match="LM Studio takes no grammar"):
        body("lmstudio")


def test_an_answer_under_a_grammar_is_read_as_text() -> None:
    async def go() -> tuple[Any, ReceivedRequest]:
        gets = {"/v1/models": json_answer({"data": [{"owned_by": "llamacpp"}]})}
        async with serving(json_answer(chat(CALL_TEXT)), gets=gets) as server:
            return await backend(server).complete(ask(mode="grammar", choice="required")), server.posts[0]

    found, heard = asyncio.run(go())
    assert found.mode == "grammar" and found.attempts[0].arguments == {"city": "Oslo"} and not found.problems
    assert "root" in heard.body["grammar"]


def test_an_answer_under_a_schema_is_read_as_a_bare_call() -> None:
    async def go() -> Any:
        text = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
        whole = json_answer({"message": {"role": "assistant", "content": text}, "done": True})
        async with serving(whole) as server:
            found = await backend(server, api="ollama").complete(ask(mode="grammar", choice="required"))
            assert "format" in server.posts[0].body
            return found

    found = asyncio.run(go())
    assert found.attempts[0].arguments == {"city": "Oslo"} and not any(problem.blocking for problem in found.problems)


def test_a_server_takes_its_grammar_only_with_its_own_api() -> None:
    with pytest.raises(Unsupported, match="Ollama takes no grammar with api='chat'"):
        make_plan(ask(choice="required"), ModeChoice("grammar", PROFILES["ollama"]), "chat", "m", stream=False)


def test_auto_tries_a_grammar_before_text() -> None:
    async def go() -> list[str]:
        gets = {"/v1/models": json_answer({"data": [{"owned_by": "llamacpp"}]})}
        talk, call = json_answer(chat("I would rather talk.")), json_answer(chat(CALL_TEXT))
        async with serving(talk, call, gets=gets) as server:
            found = await backend(server).complete(ask(mode=None, choice="required"))
            assert found.attempts and "grammar" in server.posts[1].body
            return [found.mode, found.evidence[-1]]

    assert asyncio.run(go()) == ["grammar", "grammar instead of native: a forced call did not come"]
