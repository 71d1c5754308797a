"""Base URLs, API addresses and keys of model servers, given or from the environment.

    api_address("http://127.0.0.1:8081/v1/", "chat")   ->   http://127.0.0.1:8081/v1/chat/completions

A key from a variable that the user did not name is sent over https or to this machine only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple, cast
from urllib.parse import SplitResult, quote, urlsplit

from rightcall.api_names import Api, api_name
from rightcall.errors import CallerError
from rightcall.redaction.key import Key
from rightcall.redaction.secret_names import is_secret_name
from rightcall.request_gate import is_loopback


class ApiDefaults(NamedTuple):
    """Defaults of one API: its path, its usual base URL, and the environment variables for base URL and key."""

    path: str
    usual: str
    url_names: tuple[str, ...]
    key_names: tuple[str, ...]


_OPENAI = ("https://api.openai.com", ("OPENAI_BASE_URL", "OPENAI_API_BASE"), ("OPENAI_API_KEY",))
API_DEFAULTS: dict[Api, ApiDefaults] = {
    "chat": ApiDefaults("/v1/chat/completions", *_OPENAI),
    "responses": ApiDefaults("/v1/responses", *_OPENAI),
    "completions": ApiDefaults("/v1/completions", *_OPENAI),
    "messages": ApiDefaults(
        "/v1/messages",
        "https://api.anthropic.com",
        ("ANTHROPIC_BASE_URL",),
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    ),
    "ollama": ApiDefaults("/api/chat", "http://127.0.0.1:11434", ("OLLAMA_HOST",), ("OLLAMA_API_KEY",)),
    "gemini": ApiDefaults(
        "/v1beta/models",
        "https://generativelanguage.googleapis.com",
        ("GOOGLE_GEMINI_BASE_URL", "GEMINI_BASE_URL"),
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
}
# Ends that a base URL may have though it should not: the longest first.
_ODD_CHAR = re.compile(r"[\x00-\x20\x7f]")
_PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1beta/models", "/api/chat")
_ENDS = (*_PATHS, "/v1beta", "/v1")


def check_api(api: str) -> Api:
    """Return the API with this name or alias. Raises `CallerError` if there is none."""
    return cast(Api, api_name(api, API_DEFAULTS))


def find_base_url(base_url: str | None, api: Api, environ: Mapping[str, str] | None = None) -> str:
    """Return the given base URL, else the one in a variable of the environment, else the default of the API. The host
    of an Ollama server is completed to a URL. It is not checked."""
    habit, environ = API_DEFAULTS[api], os.environ if environ is None else environ
    found = base_url or next((environ[name] for name in habit.url_names if environ.get(name)), habit.usual)
    return _ollama_base_url(found) if api == "ollama" else found


def _ollama_base_url(host: str) -> str:
    """Return the value of OLLAMA_HOST as a URL: missing scheme and port (11434) are added, and the address 0.0.0.0, on
    which a server listens, becomes 127.0.0.1."""
    if "://" not in host:
        bare = host.rstrip("/")
        with_port = bare if ":" in bare.rpartition("]")[2] else f"{bare}:11434"
        host = f"http://{with_port}"
    return host.replace("://0.0.0.0", "://127.0.0.1", 1)


def root_url(base_url: str) -> str:
    """Return the base URL without a path of an API, such as `/v1` or `/v1/chat/completions`, at its end. Raises
    `CallerError` if it is not a base URL."""
    parts = _parse_base_url(base_url)
    path = parts.path.rstrip("/")
    end = next((each for each in _ENDS if path.endswith(each)), "")
    return f"{parts.scheme}://{parts.netloc}{path.removesuffix(end)}"


def api_address(base_url: str, api: Api) -> str:
    """Return the URL of the API below a base URL. A URL that already ends in the path of this API stays as it is.
    Raises `CallerError` if it is not a base URL."""
    path, stripped = API_DEFAULTS[api].path, base_url.rstrip("/")
    ends = [short for each in API_DEFAULTS.values() if stripped.endswith(short := _remove_version(each.path))]
    if ends and max(ends, key=len) == _remove_version(path):
        _parse_base_url(stripped)
        return stripped
    return root_url(base_url) + path


def _remove_version(path: str) -> str:
    """Return a path without the version of the API at its beginning."""
    return path.removeprefix("/v1beta").removeprefix("/v1")


def request_address(address: str, api: Api, model: str, *, stream: bool) -> str:
    """Return the URL of one request, given the `address` of the API. It is that address, except that Gemini's contains
    the model and differs for streams."""
    if api != "gemini":
        return address
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"{address}/{quote(model.removeprefix('models/'), safe='', errors='replace')}:{verb}"


def _parse_base_url(base_url: str) -> SplitResult:
    """Split a base URL into its parts. Raises `CallerError` for credentials, a query, a fragment, a missing scheme or
    host, and blanks or control characters inside it."""
    parts = _split_url(base_url)
    host = parts.hostname
    if "@" in parts.netloc:
        raise CallerError(
            f"the base URL for {host} holds credentials; take them out and name the key's variable with api_key_env"
        )
    if "?" in base_url or "#" in base_url:
        raise CallerError(f"the base URL for {host} has a query string or a fragment; give the address alone")
    if parts.scheme not in ("http", "https") or not host:
        raise CallerError(f"{base_url!r} is not a base URL; write it like http://127.0.0.1:8080")
    if _ODD_CHAR.search(base_url.strip()):
        raise CallerError(f"the base URL {base_url!r} has a blank or control character in it")
    return parts


def _split_url(base_url: str) -> SplitResult:
    """Split a URL into its parts, without surrounding white space. Raises `CallerError` if it cannot be parsed."""
    try:
        parts = urlsplit(base_url.strip())
        _ = parts.hostname, parts.port
    except ValueError as error:
        raise CallerError(f"the base URL cannot be read: {error}; write it like http://127.0.0.1:8080") from None
    return parts


def own_secrets(key: Key | None, headers: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the secret values to hide from all output: the key's, and those of headers whose name says that they are
    secret."""
    own = [] if key is None else [key.reveal()]
    return (*own, *[value for name, value in (headers or {}).items() if is_secret_name(name)])


def find_key(api: Api, api_key_env: str | None, url: str, environ: Mapping[str, str] | None = None) -> Key | None:
    """Return the key to send to the address `url`: that of the variable `api_key_env`, else of a usual one of the API.
    None if no usual one is set, or if it would be sent unencrypted to another machine. Raises `CallerError` if
    `api_key_env` names a variable that is not set, or if a header cannot carry the key."""
    environ = os.environ if environ is None else environ
    if api_key_env:
        text = environ.get(api_key_env, "").strip()
        if not text:
            raise CallerError(f"the environment has no {api_key_env}; set it to the key, or name another variable")
        return _check_key(Key(text, api_key_env))
    name = next((name for name in API_DEFAULTS[api].key_names if environ.get(name, "").strip()), None)
    if name is None or not is_private_connection(url):
        return None
    return _check_key(Key(environ[name].strip(), name))


def _check_key(key: Key) -> Key:
    """Return the key unchanged. Raises `CallerError` if an HTTP header cannot carry it."""
    if not key.reveal().isascii() or not key.reveal().isprintable():
        raise CallerError(f"the key in {key.name} has characters that no header can carry; set it again")
    return key


def is_private_connection(url: str) -> bool:
    """Return True if a third party cannot read the connection: https, or a loopback address."""
    parts = urlsplit(url)
    return parts.scheme == "https" or is_loopback(parts.hostname or "")
