"""mode="auto": server detection, the choice of a working mode, and the recorded evidence."""

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
    "litellm": {  # response of LiteLLM 1.106
        "/v1/models": json_answer({"data": [{"id": "m", "owned_by": "openai"}]}),
        "/health/readiness": json_answer({"status": "healthy", "db": "Not connected"}),
    },
    "transformers": {  # response of transformers 5.22, whose list of models is a 500 without network access
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


def send_requests(
    *answers: Answering,
    gets: dict[str, Answering] | None = None,
    requests: int = 1,
    request: Request | None = None,
    stream: bool = False,
    **options: Any,
) -> tuple[list[Answer], Loopback]:
    async def main() -> tuple[list[Answer], Loopback]:
        async with serving(*answers, gets=gets) as server:
            client = backend(server, **options)
            answers_received = []
            for _ in range(requests):
                if stream:
                    async with client.stream(request or ask(mode=None)) as events:
                        _ = [event async for event in events]
                    answers_received.append(events.answer)
                else:
                    answers_received.append(await client.complete(request or ask(mode=None)))
            return answers_received, server

    return asyncio.run(main())


@pytest.mark.parametrize("kind, gets", SERVERS.items(), ids=SERVERS)
def test_a_known_server_gets_native_tools_without_a_probe(kind: str, gets: dict[str, Answering]) -> None:
    (found,), server = send_requests(OSLO, gets=gets)
    title = PROFILES[kind.partition(" ")[0]].title
    assert found.mode == "native" and found.evidence[0].startswith(f"{title}: GET /")
    assert len(server.posts) == 1


async def hang(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


def test_a_server_that_times_out_during_detection_has_an_unknown_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """LiteLLM's proxy answers this slowly when no other sign identifies it."""
    monkeypatch.setattr("rightcall.backends.auto_mode._PATIENCE", 1.0)
    (found,), _ = send_requests(OSLO, OSLO, gets={"/openapi.json": hang})
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
@pytest.mark.parametrize("kind", ["llama.cpp", "llama.cpp by its owner", "explicit"])
def test_llama_cpp_gets_native_tools_only_if_its_chat_template_supports_them(kind: str, props: Any, mode: str) -> None:
    gets = {**SERVERS.get(kind, {}), "/props": json_answer(props)}
    options: dict[str, Any] = {"profile": "llama.cpp"} if kind == "explicit" else {}
    found, server = send_requests(TEXT_OSLO, gets=gets, requests=2, **options)
    assert [each.mode for each in found] == [mode, mode] and ("tools" in server.posts[0].body) == (mode == "native")
    assert [each.path for each in server.requests].count("/props") == 1
    if mode != "native":
        assert "a chat template that shows no tools" in found[0].evidence[0]


def test_server_type_is_detected_once() -> None:
    found, server = send_requests(OSLO, gets=SERVERS["vllm"], requests=3)
    assert [each.path for each in server.requests if each.method == "GET"] == ["/v1/models"]
    assert len({each.evidence for each in found}) == 1


@pytest.mark.parametrize("api", ["messages", "responses", "ollama"])
def test_server_type_is_not_detected_for_an_api_with_native_tools(api: str) -> None:
    whole = {
        "messages": {"type": "message", "content": [], "stop_reason": "end_turn"},
        "responses": {"status": "completed", "output": []},
        "ollama": {"message": {"role": "assistant", "content": "Hi"}, "done": True},
    }[api]
    (found,), server = send_requests(json_answer(whole), api=api)
    assert found.mode == "native" and "has tools of its own" in found.evidence[0]
    assert len(server.requests) == 1


def test_an_unknown_server_is_probed_with_a_tool_without_arguments() -> None:
    found, server = send_requests(PROBED, OSLO, requests=2)
    assert [each.mode for each in found] == ["native", "native"] and len(server.posts) == 3
    probe = server.posts[0].body
    assert probe["tool_choice"] == "required" and probe["tools"][0]["function"]["parameters"]["properties"] == {}
    assert found[0].evidence[-1] == "native: the probe tool was called"


@pytest.mark.parametrize("refusal", [NO_TOOLS, CHAT, answer(200, b"<html>"), json_answer({"error": "no tools"})])
def test_text_mode_is_tried_if_native_tools_do_not_work(refusal: Answering) -> None:
    (found,), server = send_requests(refusal, TEXT_PROBE, TEXT_OSLO)
    assert found.mode == "text" and found.attempts[0].arguments == {"city": "Oslo"}
    assert found.evidence[-2].startswith("native: ") and found.evidence[-1] == "text: the probe tool was called"
    assert "tools" not in server.posts[-1].body


def test_a_probe_call_in_text_shows_that_native_tools_work() -> None:
    (found,), _ = send_requests(TEXT_PROBE, TEXT_OSLO)
    assert found.mode == "native" and found.attempts[0].arguments == {"city": "Oslo"}


def test_text_mode_is_used_with_a_notice_if_no_mode_works() -> None:
    (found,), _ = send_requests(CHAT)
    assert found.mode == "text" and "no mode worked" in found.evidence[-1]


def test_the_detected_mode_is_cached_per_model() -> None:
    async def main() -> list[str]:
        async with serving(PROBED, OSLO, CHAT, TEXT_PROBE, TEXT_OSLO, OSLO) as server:
            client = backend(server)
            answers = [await client.complete(ask(mode=None, model=name)) for name in ("a", "b", "a")]
            assert [post.body["model"] for post in server.posts] == ["a", "a", "b", "b", "b", "a"]
            return [each.mode for each in answers]

    assert asyncio.run(main()) == ["native", "text", "native"]


def test_a_request_is_retried_in_text_mode_if_the_server_rejects_tools() -> None:
    found, server = send_requests(NO_TOOLS, TEXT_OSLO, gets=SERVERS["lmstudio"], requests=2)
    assert [each.mode for each in found] == ["text", "text"] and len(server.posts) == 3
    assert any("instead of native: refused" in line for line in found[0].evidence)
    assert [each.status for each in found[0].tries] == [400, 200]


def test_a_stream_is_retried_in_text_mode_if_the_server_rejects_tools() -> None:
    talk = chunked(events(delta(content="I would rather talk."), delta("stop")))
    found, _ = send_requests(NO_TOOLS, talk, gets=SERVERS["lmstudio"], stream=True)
    assert [each.mode for each in found] == ["text"] and found[0].content == "I would rather talk."


def test_a_missing_forced_call_demotes_the_mode_once() -> None:
    request = ask(mode=None, choice="required")
    (found,), server = send_requests(CHAT, TEXT_OSLO, gets=SERVERS["lmstudio"], request=request)
    assert found.mode == "text" and found.attempts and "a forced call did not come" in found.evidence[-1]
    (found,), server = send_requests(CHAT, gets=SERVERS["lmstudio"], request=request)
    assert found.mode == "text" and not found.attempts and len(server.posts) == 2


def test_a_missing_optional_call_does_not_demote_the_mode() -> None:
    (found,), server = send_requests(CHAT, gets=SERVERS["lmstudio"])
    assert found.mode == "native" and len(server.posts) == 1


def test_only_a_forced_call_cut_after_text_not_during_reasoning_demotes_the_mode() -> None:
    thinking, talk = chat("", finish="length"), chat("Oslo is a beautiful city", finish="length")
    thinking["choices"][0]["message"]["reasoning_content"] = "Let me see"
    request = ask(mode=None, choice="required")
    (found,), server = send_requests(json_answer(thinking), gets=SERVERS["lmstudio"], request=request)
    assert found.mode == "native" and len(server.posts) == 1
    (found,), _ = send_requests(json_answer(talk), TEXT_OSLO, gets=SERVERS["lmstudio"], request=request)
    assert found.mode == "text" and found.attempts


def test_a_stream_without_the_forced_call_demotes_the_next_request() -> None:
    talk = chunked(events(delta(content="I would rather talk."), delta("stop")))
    found, _ = send_requests(
        talk, gets=SERVERS["lmstudio"], request=ask(mode=None, choice="required"), requests=2, stream=True
    )
    assert [each.mode for each in found] == ["native", "text"]


def test_an_explicit_mode_is_used_without_detection() -> None:
    (found,), server = send_requests(TEXT_OSLO, request=ask(mode="text"))
    assert (found.mode, found.evidence) == ("text", ("set explicitly",)) and len(server.requests) == 1


def test_an_explicit_mode_is_never_changed() -> None:
    with pytest.raises(StatusError):
        send_requests(NO_TOOLS, TEXT_OSLO, request=ask(mode="native"))


def test_a_request_without_tools_needs_no_mode() -> None:
    (found,), server = send_requests(CHAT, request=ask(mode=None, tools=None))
    assert found.content == "I would rather talk." and len(server.requests) == 1


def test_an_unreachable_or_unauthorised_server_is_an_error() -> None:
    with pytest.raises(Unauthorised):
        send_requests(OSLO, gets={"/v1/models": json_answer({}, 401)})

    async def main() -> None:
        async with serving(OSLO) as server:
            client = backend(server)
        with pytest.raises(TransportError) as raised:
            await client.complete(ask(mode=None))
        assert len(raised.value.tries) == 3

    asyncio.run(main())


def test_one_lost_connection_during_detection_is_not_fatal() -> None:
    (found,), _ = send_requests(drop, PROBED, OSLO, gets={"/v1/models": drop})
    assert found.mode == "native" and found.attempts


def test_a_server_whose_type_is_not_detected_in_time_is_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rightcall.backends.auto_mode._PATIENCE", 1.0)
    (found,), _ = send_requests(PROBED, OSLO, gets={"/v1/models": silence})
    assert found.mode == "native" and "type could not be detected" in found.evidence[0]


def test_an_unsupported_mode_is_skipped_after_a_demotion() -> None:
    modes = ModeSelector("chat", "http://h", PROFILES["vllm"])
    refusal = StatusError("", 400, "no tools")
    first = modes.fallback_after_error("m", ModeChoice("native", PROFILES["vllm"], is_auto=True), refusal)
    assert first is not None and modes.fallback_after_error("m", first, refusal) is None
    skipped = modes.fallback_after_error(
        "m", ModeChoice("grammar", PROFILES["vllm"], is_auto=True), Unsupported("no grammar for this")
    )
    assert skipped is not None and skipped.mode == "text" and "no grammar for this" in skipped.evidence[-1]


def test_an_explicit_profile_is_used() -> None:
    (found,), server = send_requests(OSLO, profile="vllm")
    assert found.evidence == ("vLLM: set explicitly",) and len(server.requests) == 1
    with pytest.raises(CallerError, match="there are openai"):
        send_requests(OSLO, profile="vlm")


def test_a_grammar_of_the_tools_is_sent_to_a_server_that_supports_grammars() -> None:
    (found,), server = send_requests(
        TEXT_OSLO, gets=SERVERS["llama.cpp"], request=ask(mode="grammar", choice="required")
    )
    assert found.mode == "grammar" and found.attempts[0].arguments == {"city": "Oslo"}
    assert "root ::=" in server.posts[-1].body["grammar"] and "tools" not in server.posts[-1].body


def test_grammar_mode_is_an_error_for_a_server_without_grammars() -> None:
    with pytest.raises(Unsupported, match="use mode='native' or 'text'"):
        send_requests(OSLO, request=ask(mode="grammar"))


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_every_profile_is_identified_by_its_signs_and_found_by_name(profile: Profile) -> None:
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
            key_or_route: dict[str, object] = {"paths": {sign.route: {}}} if sign.route else {sign.key: 1}
            body: dict[str, object] = {"data": [{"owned_by": sign.owned_by}]} if sign.owned_by else key_or_route
            found = identify_by_answer(sign.path, {}, body)
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


def test_a_meaningless_response_identifies_no_profile() -> None:
    for path in identifying_paths():
        for body in MEANINGLESS:
            shown = identify_by_answer(path, {}, body)
            assert shown is None or (path, body) == ("/api/v0/models", {"data": [None]})


def test_every_api_with_its_own_profile_exists() -> None:
    from rightcall.backends.profiles import BY_API

    assert set(BY_API) <= set(API_DEFAULTS) and set(BY_API.values()) <= set(PROFILES)
