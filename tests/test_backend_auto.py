"""mode="auto": what kind of server it is, which way works, and the evidence."""

import asyncio
from typing import Any

import pytest

from rightcall.backends.address import API_DEFAULTS
from rightcall.backends.auto_mode import ModeSelector
from rightcall.backends.profiles import (
    PROFILES,
    Profile,
    find_profile,
    identify_by_answer,
    identify_by_host,
    identifying_paths,
)
from rightcall.backends.request import Answer, Request
from rightcall.backends.request_plan import ModeChoice, can_constrain
from rightcall.errors import CallerError, StatusError, TransportError, Unauthorised, Unsupported
from support.loopback import (
    Answering,
    Loopback,
    answer,
    ask,
    backend,
    chat,
    chunked,
    delta,
    drop,
    events,
    json_answer,
    serving,
    silence,
)

PROBED = json_answer(chat(calls=(("tool_probe", "{}"),)))
OSLO = json_answer(chat(calls=(("get_weather", '{"city": "Oslo"}'),)))
TEXT_PROBE = json_answer(chat('<tool_call>\n{"name": "tool_probe", "arguments": {}}\n</tool_call>'))
TEXT_OSLO = json_answer(chat('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'))
CHAT = json_answer(chat("I would rather talk."))
NO_TOOLS = json_answer({"error": {"message": "this model does not support tools"}}, 400)

SERVERS: dict[str, dict[str, Answering]] = {
    "llama.cpp": {"/v1/models": json_answer({"data": []}, Server="llama.cpp")},
    "llama.cpp by its owner": {"/v1/models": json_answer({"data": [{"id": "m", "owned_by": "llamacpp"}]})},
    "llama.cpp by its props": {"/props": json_answer({"default_generation_settings": {}})},
    "vllm": {"/v1/models": json_answer({"data": [{"id": "m", "owned_by": "vllm"}]})},
    "sglang": {"/v1/models": json_answer({"data": [{"id": "m", "owned_by": "sglang"}]})},
    "sglang by its info": {"/get_model_info": json_answer({"model_path": "x"})},
    "litellm": {  # as 1.106 says it
        "/v1/models": json_answer({"data": [{"id": "m", "owned_by": "openai"}]}),
        "/health/readiness": json_answer({"status": "healthy", "db": "Not connected"}),
    },
    "transformers": {  # as 5.22 says it; its list of models is a 500 where there is no network
        "/openapi.json": json_answer({"openapi": "3.1.0", "paths": {"/v1/chat/completions": {}, "/load_model": {}}})
    },
    "ollama": {"/api/version": json_answer({"version": "0.12.0"})},
    "ollama by its owner": {"/v1/models": json_answer({"data": [{"id": "m", "owned_by": "library"}]})},
    "lmstudio": {"/v1/models": json_answer({"data": [{"id": "m", "owned_by": "organization_owner"}]})},
    "lmstudio by its own API": {
        "/v1/models": json_answer({"error": "Unexpected endpoint or method."}),
        "/api/version": json_answer({"error": "Unexpected endpoint or method."}),
        "/api/v0/models": json_answer({"data": [{"id": "m", "arch": "llama"}]}),
    },
    "openai": {"/v1/models": json_answer({"data": []}, openai_version="2020-10-01")},
    "anthropic": {"/v1/models": json_answer({"data": []}, anthropic_organization_id="x")},
}


def asked(
    *answers: Answering,
    gets: dict[str, Answering] | None = None,
    requests: int = 1,
    request: Request | None = None,
    stream: bool = False,
    **options: Any,
) -> tuple[list[Answer], Loopback]:
    async def go() -> tuple[list[Answer], Loopback]:
        async with serving(*answers, gets=gets) as server:
            made = backend(server, **options)
            found = []
            for _ in range(requests):
                if stream:
                    async with made.stream(request or ask(mode=None)) as events:
                        _ = [event async for event in events]
                    found.append(events.answer)
                else:
                    found.append(await made.complete(request or ask(mode=None)))
            return found, server

    return asyncio.run(go())


@pytest.mark.parametrize("kind, gets", SERVERS.items(), ids=SERVERS)
def test_a_known_server_is_recognised_and_asked_natively_without_a_probe(kind: str, gets: dict[str, Answering]) -> None:
    (found,), server = asked(OSLO, gets=gets)
    title = PROFILES[kind.partition(" ")[0]].title
    assert found.mode == "native" and found.evidence[0].startswith(f"{title}: GET /")
    assert len(server.posts) == 1


async def never(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


def test_a_server_that_takes_too_long_to_describe_itself_is_of_no_kind_that_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """LiteLLM's proxy does, where it is not known by another sign."""
    monkeypatch.setattr("rightcall.backends.auto_mode._PATIENCE", 2.0)
    (found,), _ = asked(OSLO, OSLO, gets={"/openapi.json": never})
    assert found.evidence[0] == "unknown server type"


PROPS = {"default_generation_settings": {}, "chat_template_caps": {"supports_tools": False}}
NOT_NATIVE = "grammar" if can_constrain(PROFILES["llama.cpp"], "chat") else "text"
TEMPLATES: dict[str, tuple[Any, str]] = {
    "without tools": (PROPS, NOT_NATIVE),
    "with tools": ({"chat_template_caps": {"supports_tools": True}}, "native"),
    "of an older server": ({"default_generation_settings": {}}, "native"),
    "odd": ({"chat_template_caps": "none"}, "native"),
    "list": ([], "native"),
}


@pytest.mark.parametrize("props, mode", TEMPLATES.values(), ids=TEMPLATES)
@pytest.mark.parametrize("kind", ["llama.cpp", "llama.cpp by its owner", "said"])
def test_llama_cpp_is_asked_natively_only_if_the_chat_template_shows_tools(kind: str, props: Any, mode: str) -> None:
    gets = {**SERVERS.get(kind, {}), "/props": json_answer(props)}
    options: dict[str, Any] = {"profile": "llama.cpp"} if kind == "said" else {}
    found, server = asked(TEXT_OSLO, gets=gets, requests=2, **options)
    assert [each.mode for each in found] == [mode, mode] and ("tools" in server.posts[0].body) == (mode == "native")
    assert [each.path for each in server.heard].count("/props") == 1
    if mode != "native":
        assert "a chat template that shows no tools" in found[0].evidence[0]


def test_a_server_is_asked_only_once_what_it_is() -> None:
    found, server = asked(OSLO, gets=SERVERS["vllm"], requests=3)
    assert [each.path for each in server.heard if each.method == "GET"] == ["/v1/models"]
    assert len({each.evidence for each in found}) == 1


@pytest.mark.parametrize("api", ["messages", "responses", "ollama"])
def test_an_api_that_has_tools_by_definition_is_not_asked_what_it_is(api: str) -> None:
    whole = {
        "messages": {"type": "message", "content": [], "stop_reason": "end_turn"},
        "responses": {"status": "completed", "output": []},
        "ollama": {"message": {"role": "assistant", "content": "Hi"}, "done": True},
    }[api]
    (found,), server = asked(json_answer(whole), api=api)
    assert found.mode == "native" and "has tools of its own" in found.evidence[0]
    assert len(server.heard) == 1


def test_an_unknown_server_is_probed_with_a_tool_without_arguments() -> None:
    found, server = asked(PROBED, OSLO, requests=2)
    assert [each.mode for each in found] == ["native", "native"] and len(server.posts) == 3
    probe = server.posts[0].body
    assert probe["tool_choice"] == "required" and probe["tools"][0]["function"]["parameters"]["properties"] == {}
    assert found[0].evidence[-1] == "native: the probe tool was called"


@pytest.mark.parametrize("refusal", [NO_TOOLS, CHAT, answer(200, b"<html>"), json_answer({"error": "no tools"})])
def test_where_native_tools_do_not_work_text_is_tried(refusal: Answering) -> None:
    (found,), server = asked(refusal, TEXT_PROBE, TEXT_OSLO)
    assert found.mode == "text" and found.attempts[0].arguments == {"city": "Oslo"}
    assert found.evidence[-2].startswith("native: ") and found.evidence[-1] == "text: the probe tool was called"
    assert "tools" not in server.posts[-1].body


def test_a_call_that_leaks_into_the_text_still_shows_that_native_tools_work() -> None:
    (found,), _ = asked(TEXT_PROBE, TEXT_OSLO)
    assert found.mode == "native" and found.attempts[0].arguments == {"city": "Oslo"}


def test_if_no_mode_works_it_is_text_with_a_notice() -> None:
    (found,), _ = asked(CHAT)
    assert found.mode == "text" and "no mode worked" in found.evidence[-1]


def test_what_is_found_is_kept_for_each_model() -> None:
    async def go() -> list[str]:
        async with serving(PROBED, OSLO, CHAT, TEXT_PROBE, TEXT_OSLO, OSLO) as server:
            made = backend(server)
            answers = [await made.complete(ask(mode=None, model=name)) for name in ("a", "b", "a")]
            assert [post.body["model"] for post in server.posts] == ["a", "a", "b", "b", "b", "a"]
            return [each.mode for each in answers]

    assert asyncio.run(go()) == ["native", "text", "native"]


def test_a_server_that_refuses_tools_after_all_is_asked_in_text_at_once() -> None:
    found, server = asked(NO_TOOLS, TEXT_OSLO, gets=SERVERS["lmstudio"], requests=2)
    assert [each.mode for each in found] == ["text", "text"] and len(server.posts) == 3
    assert any("instead of native: refused" in line for line in found[0].evidence)
    assert [each.status for each in found[0].tries] == [400, 200]


def test_a_stream_that_is_refused_for_its_tools_is_asked_for_in_text_at_once() -> None:
    talk = chunked(events(delta(content="I would rather talk."), delta("stop")))
    found, _ = asked(NO_TOOLS, talk, gets=SERVERS["lmstudio"], stream=True)
    assert [each.mode for each in found] == ["text"] and found[0].content == "I would rather talk."


def test_a_forced_call_that_does_not_come_demotes_once() -> None:
    request = ask(mode=None, choice="required")
    (found,), server = asked(CHAT, TEXT_OSLO, gets=SERVERS["lmstudio"], request=request)
    assert found.mode == "text" and found.attempts and "a forced call did not come" in found.evidence[-1]
    (found,), server = asked(CHAT, gets=SERVERS["lmstudio"], request=request)
    assert found.mode == "text" and not found.attempts and len(server.posts) == 2


def test_a_call_that_was_not_forced_may_stay_away() -> None:
    (found,), server = asked(CHAT, gets=SERVERS["lmstudio"])
    assert found.mode == "native" and len(server.posts) == 1


def test_a_forced_call_that_was_still_being_thought_of_is_no_reason_but_long_talk_is() -> None:
    thinking, talk = chat("", finish="length"), chat("Oslo is a beautiful city", finish="length")
    thinking["choices"][0]["message"]["reasoning_content"] = "Let me see"
    request = ask(mode=None, choice="required")
    (found,), server = asked(json_answer(thinking), gets=SERVERS["lmstudio"], request=request)
    assert found.mode == "native" and len(server.posts) == 1
    (found,), _ = asked(json_answer(talk), TEXT_OSLO, gets=SERVERS["lmstudio"], request=request)
    assert found.mode == "text" and found.attempts


def test_a_stream_is_given_out_as_it_comes_and_the_next_one_is_demoted() -> None:
    talk = chunked(events(delta(content="I would rather talk."), delta("stop")))
    found, _ = asked(talk, gets=SERVERS["lmstudio"], request=ask(mode=None, choice="required"), requests=2, stream=True)
    assert [each.mode for each in found] == ["native", "text"]


def test_what_you_say_is_done_and_nothing_is_asked() -> None:
    (found,), server = asked(TEXT_OSLO, request=ask(mode="text"))
    assert (found.mode, found.evidence) == ("text", ("set explicitly",)) and len(server.heard) == 1


def test_an_explicit_mode_is_never_changed() -> None:
    with pytest.raises(StatusError):
        asked(NO_TOOLS, TEXT_OSLO, request=ask(mode="native"))


def test_a_request_without_tools_needs_no_mode() -> None:
    (found,), server = asked(CHAT, request=ask(mode=None, tools=None))
    assert found.content == "I would rather talk." and len(server.heard) == 1


def test_a_server_that_is_not_there_or_wants_a_key_is_not_guessed_at() -> None:
    with pytest.raises(Unauthorised):
        asked(OSLO, gets={"/v1/models": json_answer({}, 401)})

    async def go() -> None:
        async with serving(OSLO) as server:
            gone = backend(server)
        with pytest.raises(TransportError) as raised:
            await gone.complete(ask(mode=None))
        assert len(raised.value.tries) == 3

    asyncio.run(go())


def test_a_server_that_comes_back_is_not_given_up_for_one_lost_connection() -> None:
    (found,), _ = asked(drop, PROBED, OSLO, gets={"/v1/models": drop})
    assert found.mode == "native" and found.attempts


def test_a_server_that_does_not_say_what_it_is_in_time_is_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rightcall.backends.auto_mode._PATIENCE", 2.0)
    (found,), _ = asked(PROBED, OSLO, gets={"/v1/models": silence})
    assert found.mode == "native" and "type could not be detected" in found.evidence[0]


def test_a_way_that_turns_out_impossible_is_skipped_even_after_a_demotion() -> None:
    modes = ModeSelector("chat", "http://h", PROFILES["vllm"])
    refusal = StatusError("", 400, "no tools")
    first = modes.fallback_after_error("m", ModeChoice("native", PROFILES["vllm"], is_auto=True), refusal)
    assert first is not None and modes.fallback_after_error("m", first, refusal) is None
    skipped = modes.fallback_after_error(
        "m", ModeChoice("grammar", PROFILES["vllm"], is_auto=True), Unsupported("no grammar for this")
    )
    assert skipped is not None and skipped.mode == "text" and "no grammar for this" in skipped.evidence[-1]


def test_an_explicit_profile_is_used() -> None:
    (found,), server = asked(OSLO, profile="vllm")
    assert found.evidence == ("vLLM: set explicitly",) and len(server.heard) == 1
    with pytest.raises(CallerError, match="there are openai"):
        asked(OSLO, profile="vlm")


def test_a_server_that_takes_a_grammar_is_held_to_the_tools() -> None:
    (found,), server = asked(TEXT_OSLO, gets=SERVERS["llama.cpp"], request=ask(mode="grammar", choice="required"))
    assert found.mode == "grammar" and found.attempts[0].arguments == {"city": "Oslo"}
    assert "root ::=" in server.posts[-1].body["grammar"] and "tools" not in server.posts[-1].body


def test_a_grammar_for_a_server_that_takes_none_is_a_clear_error() -> None:
    with pytest.raises(Unsupported, match="use mode='native' or 'text'"):
        asked(OSLO, request=ask(mode="grammar"))


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_every_profile_can_be_recognised_and_found_by_name(profile: Profile) -> None:
    assert find_profile(profile.name) is profile and profile.signs
    for sign in profile.signs:
        assert bool(sign.host) != bool(sign.path)
        if sign.host:
            assert identify_by_host(sign.host) is profile and identify_by_host(f"eu.{sign.host}") is profile
            assert identify_by_host(f"not{sign.host}") is None
        elif sign.header:
            name, begins = sign.header
            found = identify_by_answer(sign.path, {name: begins + "x"}, None)
            assert found is not None and found[0] is profile
        else:
            told: dict[str, object] = {"paths": {sign.route: {}}} if sign.route else {sign.key: 1}
            shown: dict[str, object] = {"data": [{"owned_by": sign.owned_by}]} if sign.owned_by else told
            found = identify_by_answer(sign.path, {}, shown)
            assert found is not None and found[0] is profile


MEANINGLESS: list[Any] = [
    None,
    [],
    {},
    {"error": "x", "version": "1"},
    {"data": None},
    {"data": [None]},
    {"paths": "/load_model"},
    "text",
]


def test_an_answer_that_means_nothing_is_no_profile() -> None:
    for path in identifying_paths():
        for body in MEANINGLESS:
            shown = identify_by_answer(path, {}, body)
            assert shown is None or (path, body) == ("/api/v0/models", {"data": [None]})


def test_every_api_with_a_profile_of_its_own_exists() -> None:
    from rightcall.backends.profiles import BY_API

    assert set(BY_API) <= set(API_DEFAULTS) and set(BY_API.values()) <= set(PROFILES)
