"""Base URLs, API addresses, and keys that are sent only to their own API."""

import pytest

from rightcall import RightcallError
from rightcall.backends.address import api_address, check_api, find_base_url, find_key, root_url
from rightcall.backends.http import Backend
from rightcall.errors import CallerError
from rightcall.redaction.key import Key
from rightcall.request_gate import is_loopback

CHAT = [
    *((f"http://h:1{end}", "http://h:1/v1/chat/completions") for end in ("", "/", "///", "/v1", "/v1/", "/v1//")),
    ("http://h:1/v1/chat/completions/", "http://h:1/v1/chat/completions"),
    ("http://h:1/v1/chat/completions", "http://h:1/v1/chat/completions"),
    ("http://h:1/api", "http://h:1/api/v1/chat/completions"),
    ("http://127.0.0.1:8081", "http://127.0.0.1:8081/v1/chat/completions"),
    ("http://127.0.0.1:8081/v1", "http://127.0.0.1:8081/v1/chat/completions"),
    ("https://h/v1beta/openai/chat/completions", "https://h/v1beta/openai/chat/completions"),
    ("http://[::1]:8080", "http://[::1]:8080/v1/chat/completions"),
]


@pytest.mark.parametrize("given, whole", CHAT)
def test_a_base_url_with_and_without_its_path_gives_the_chat_address(given: str, whole: str) -> None:
    assert api_address(given, "chat") == whole


@pytest.mark.parametrize(
    "api, path",
    [
        ("responses", "/v1/responses"),
        ("messages", "/v1/messages"),
        ("completions", "/v1/completions"),
        ("ollama", "/api/chat"),
    ],
)
@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/chat/completions", "/api/chat"])
def test_every_api_has_its_own_path_for_every_given_path(api: str, path: str, end: str) -> None:
    assert api_address(f"http://h:1{end}", check_api(api)) == f"http://h:1{path}"
    assert root_url(f"http://h:1{end}") == "http://h:1"


@pytest.mark.parametrize(
    "given, message",
    [
        ("http://user:hunter2@h:1", "credentials"),
        ("http://:hunter2@h:1/v1", "credentials"),
        ("http://h:1/v1?api_key=hunter2", "query string"),
        ("http://h:1/v1#hunter2", "fragment"),
        ("http://h:1/v1?", "query string"),
        ("http://h:1/v1#", "fragment"),
        ("localhost:8080", "http://127.0.0.1:8080"),
        ("ftp://h", "is not a base URL"),
        ("http://", "is not a base URL"),
        ("http://h:port", "cannot be read"),
        ("http://h:1/a b", "blank or control"),
        ("http://[::1", "cannot be read"),
    ],
)
def test_an_invalid_base_url_is_rejected_without_repeating_a_secret(given: str, message: str) -> None:
    with pytest.raises(CallerError, match=message) as raised:
        Backend(given, environ={})
    assert "hunter2" not in str(raised.value)


def test_an_unknown_api_is_rejected_with_the_list_of_known_apis() -> None:
    with pytest.raises(CallerError, match="chat, responses, completions, messages, ollama"):
        Backend("http://h", api="soap", environ={})
    assert check_api("openai") == "chat" and check_api("claude") == "messages"


@pytest.mark.parametrize(
    "api, environ, found",
    [
        ("chat", {}, "https://api.openai.com"),
        ("chat", {"OPENAI_BASE_URL": "http://h/v1"}, "http://h/v1"),
        ("responses", {"OPENAI_API_BASE": "http://h/v1"}, "http://h/v1"),
        ("messages", {"ANTHROPIC_BASE_URL": "http://a"}, "http://a"),
        ("messages", {"OPENAI_BASE_URL": "http://h"}, "https://api.anthropic.com"),
        ("ollama", {}, "http://127.0.0.1:11434"),
        ("ollama", {"OLLAMA_HOST": "0.0.0.0"}, "http://127.0.0.1:11434"),
        ("ollama", {"OLLAMA_HOST": "box:8000"}, "http://box:8000"),
        ("ollama", {"OLLAMA_HOST": "https://box"}, "https://box"),
        ("ollama", {"OLLAMA_HOST": "[::1]"}, "http://[::1]:11434"),
    ],
)
def test_a_base_url_is_read_from_the_usual_environment_variables(api: str, environ: dict[str, str], found: str) -> None:
    assert find_base_url(None, check_api(api), environ) == found


@pytest.mark.parametrize(
    "api, url, named, environ, name",
    [
        ("chat", "https://h", None, {"OPENAI_API_KEY": "k"}, "OPENAI_API_KEY"),
        ("chat", "http://127.0.0.1:1", None, {"OPENAI_API_KEY": "k"}, "OPENAI_API_KEY"),
        ("chat", "http://localhost:1", None, {"OPENAI_API_KEY": "k"}, "OPENAI_API_KEY"),
        ("chat", "http://10.0.0.1:1", None, {"OPENAI_API_KEY": "k"}, None),
        ("chat", "http://10.0.0.1:1", "MINE", {"MINE": "k"}, "MINE"),
        ("chat", "https://h", "MINE", {"OPENAI_API_KEY": "k", "MINE": "m"}, "MINE"),
        ("chat", "https://h", None, {"ANTHROPIC_API_KEY": "k"}, None),
        ("messages", "https://h", None, {"ANTHROPIC_API_KEY": "k"}, "ANTHROPIC_API_KEY"),
        ("messages", "https://h", None, {"ANTHROPIC_AUTH_TOKEN": "k"}, "ANTHROPIC_AUTH_TOKEN"),
        ("ollama", "https://h", None, {"OLLAMA_API_KEY": "k"}, "OLLAMA_API_KEY"),
        ("chat", "https://h", None, {"OPENAI_API_KEY": " "}, None),
    ],
)
def test_a_key_is_sent_only_to_its_api_and_never_unencrypted_to_another_machine(
    api: str, url: str, named: str | None, environ: dict[str, str], name: str | None
) -> None:
    found = find_key(check_api(api), named, url, environ)
    assert (found and found.name) == name


def test_a_named_variable_that_is_not_set_is_an_error() -> None:
    with pytest.raises(CallerError, match="the environment has no MINE"):
        Backend("http://h", api_key_env="MINE", environ={})


def test_a_key_with_invalid_header_characters_is_rejected_and_not_shown() -> None:
    with pytest.raises(CallerError, match="MINE has characters") as raised:
        Backend("http://h", api_key_env="MINE", environ={"MINE": "bad\nkey"})
    assert "bad" not in str(raised.value)


def test_a_key_is_never_shown() -> None:
    key = Key("sk-hunter2", "MINE")
    backend = Backend("https://h", api_key_env="MINE", environ={"MINE": "sk-hunter2"})
    assert "hunter2" not in f"{key!r} {key} {backend!r} {vars(backend)}"
    assert backend.scrubber.text("you sent sk-hunter2!") == "you sent [key]!"


def test_a_secret_in_the_headers_is_rejected() -> None:
    with pytest.raises(RightcallError, match="api_key_env") as raised:
        Backend("http://h", headers={"Authorization": "Bearer hunter2"}, environ={})
    assert "hunter2" not in str(raised.value)


def test_only_addresses_of_this_machine_are_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost", "a.localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "10.0.0.1", "localhost.example.org", "127.0.0.1.example.org", "")))
    assert not any(map(is_loopback, ("evil-localhost", "evillocalhost", "a.evil-localhost", "localhost.localdomain")))
