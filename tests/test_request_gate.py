"""One gate before every server of ours: Host, Origin, content type, key and limits of a request.

The decision is tested as tables, then over sockets with each server: the replay server, the model server and MCP.
"""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall.api_names import APIS, Api
from rightcall.backends.cassette import CassetteHead as CassetteHead
from rightcall.backends.cassette import load_cassette, start_cassette
from rightcall.backends.local import LocalServer
from rightcall.backends.recording import ReplayServer
from rightcall.errors import CallerError
from rightcall.listeners import WebServer, gate_asgi
from rightcall.redaction.key import Key
from rightcall.request_gate import (
    RequestHead,
    RequestLimits,
    api_of_path,
    error_body,
    given_key,
    make_gate,
    new_key,
    refusal_body,
)
from support.stand_in_llama import model_file, write_package

KEY = "rck_open-sesame-open-sesame"
GUARD = make_gate("127.0.0.1", key=Key(KEY, "test"), origins=["http://localhost:3000"])
BEARER = {"authorization": f"Bearer {KEY}"}
JSON = {"content-type": "application/json"}
HOST = {"host": "127.0.0.1:8080"}


def status(method: str = "POST", path: str = "/v1/chat/completions", *, guard: Any = GUARD, **headers: Any) -> int:
    """Return 200 for an accepted request. Given headers replace those of a valid request."""
    given = {**HOST, **JSON, **BEARER, **{name.replace("_", "-"): value for name, value in headers.items()}}
    refused = guard.check(RequestHead(method, path, [(name, value) for name, value in given.items() if value]))
    return 200 if refused is None else refused.status


HOSTS = {
    "127.0.0.1:8080": 200,
    "127.0.0.1": 200,
    "localhost:9999": 200,
    "LOCALHOST.": 200,
    "app.localhost": 200,
    "[::1]:8080": 200,
    "127.8.8.8": 200,
    "": 421,
    "evil.com": 421,
    "evil.com:8080": 421,
    "localhost.evil.com": 421,
    "evil-localhost": 421,
    "evillocalhost:8080": 421,
    "app.evil-localhost": 421,
    "127.0.0.1.nip.io": 421,
    "evil.com@localhost": 421,
    "0.0.0.0:8080": 421,
    "10.0.0.5": 421,
    "[::]": 421,
    "2130706433": 421,
    "localhost:99999999": 421,
    "localhost evil": 421,
    "127.0.0.1#evil.com": 421,
}


@pytest.mark.parametrize("host, code", HOSTS.items())
def test_only_host_names_of_this_machine_are_accepted(host: str, code: int) -> None:
    assert status(host=host) == code
    assert status("GET", "/health", host=host) == code


def test_a_public_server_accepts_ip_addresses_and_configured_host_names() -> None:
    guard = make_gate("0.0.0.0", key=Key(KEY, "test"), hosts=["box.lan"])
    status_by_host = {
        host: status(guard=guard, host=host) for host in ("10.0.0.5", "BOX.lan:80", "evil.com", "0.0.0.0")
    }
    assert status_by_host == {"10.0.0.5": 200, "BOX.lan:80": 200, "evil.com": 421, "0.0.0.0": 200}
    assert status(guard=make_gate("10.0.0.5", key=Key(KEY, "test")), host="10.0.0.5:1") == 200


ORIGINS = {
    "http://127.0.0.1:8080": 200,
    "http://localhost:3000": 200,
    "HTTP://LOCALHOST:3000": 200,
    "http://localhost:3001": 403,
    "http://127.0.0.1:8081": 403,
    "http://127.0.0.1": 403,
    "https://evil.com": 403,
    "null": 403,
    "file://": 403,
    "chrome-extension://abc": 403,
    "http://[": 403,
}


@pytest.mark.parametrize("origin, code", ORIGINS.items())
def test_only_the_own_origin_and_allowed_origins_are_accepted(origin: str, code: int) -> None:
    assert status(origin=origin) == code


@pytest.mark.parametrize("site, code", {"none": 200, "same-origin": 200, "same-site": 403, "cross-site": 403}.items())
def test_a_cross_site_request_without_an_origin_is_rejected(site: str, code: int) -> None:
    assert status("GET", "/v1/models", sec_fetch_site=site) == code


KINDS = {
    "application/json": 200,
    "Application/JSON; charset=utf-8": 200,
    "": 415,
    "text/plain": 415,
    "application/x-www-form-urlencoded": 415,
    "multipart/form-data; boundary=x": 415,
    "text/plain; application/json": 415,
    "application/jsonp": 415,
}


@pytest.mark.parametrize("kind, code", KINDS.items())
def test_only_json_bodies_are_accepted(kind: str, code: int) -> None:
    assert status(content_type=kind) == code
    assert status("GET", content_type=kind) == 200


@pytest.mark.parametrize("host, address", [("::1", "http://[::1]:8080"), ("127.0.0.1", "http://127.0.0.1:8080")])
def test_the_address_of_a_server_is_a_valid_url(host: str, address: str) -> None:
    async def handle(request: Any) -> Any:
        raise AssertionError("it does not listen")

    assert WebServer(handle, make_gate(host, key=None, no_key=True), port=8080).address == address


BARE = make_gate("127.0.0.1", key=Key(KEY, "test"), origins=["http://localhost:3000"], bare_bodies=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_without_a_content_type_is_accepted_only_from_programs(kind: str) -> None:
    assert status(guard=BARE, content_type=kind) == (KINDS[kind] if kind else 200)
    for says in ({"origin": "http://localhost:3000"}, {"sec_fetch_site": "same-origin"}, {"sec_ch_ua": "x"}):
        assert status(guard=BARE, content_type=kind, **says) == KINDS[kind]


KEYS: list[tuple[dict[str, str], int]] = [
    ({"authorization": f"Bearer {KEY}"}, 200),
    ({"authorization": f"bearer  {KEY}"}, 200),
    ({"authorization": "", "x_api_key": KEY}, 200),
    ({"authorization": "Bearer wrong", "x_api_key": KEY}, 200),
    ({"authorization": ""}, 401),
    ({"authorization": "Bearer "}, 401),
    ({"authorization": "Bearer wrong"}, 401),
    ({"authorization": f"Bearer {KEY}x"}, 401),
    ({"authorization": f"Bearer {KEY[:-1]}"}, 401),
    ({"authorization": f"Basic {KEY}"}, 401),
    ({"authorization": KEY}, 401),
    ({"authorization": "Bearer \xe9\udcff"}, 401),
]


@pytest.mark.parametrize("headers, code", KEYS)
def test_requests_without_the_key_are_rejected(headers: dict[str, str], code: int) -> None:
    assert status(**headers) == code
    assert status("GET", "/health", **headers) == 200
    assert status("POST", "/health", **headers) == code


def test_headers_and_bodies_are_limited_and_unique() -> None:
    right = [*HOST.items(), *JSON.items(), *BEARER.items()]
    guard = make_gate("127.0.0.1", key=Key(KEY, "t"), limits=RequestLimits(headers=5, header_bytes=300, body=10))

    def code(*more: tuple[str, str]) -> int:
        refused = guard.check(RequestHead("POST", "/v1/chat/completions", [*right, *more]))
        return 200 if refused is None else refused.status

    assert code() == code(("content-length", "10")) == 200
    assert code(("content-length", "11")) == code(("content-length", "9" * 40)) == 413
    assert code(("content-length", "-1")) == code(("content-length", "²")) == 400
    assert code(*[("x", "y")] * 3) == code(("x", "y" * 300)) == 431
    for name, value in (("host", "evil.com"), ("origin", "x"), ("authorization", "Bearer x")):
        assert code((name, value), *([("origin", "x")] if name == "origin" else [])) == 400


@given(
    st.lists(
        st.tuples(st.sampled_from(["host", "origin", "authorization", "content-type", "x"]), st.text()), max_size=4
    )
)
def test_arbitrary_headers_without_the_key_are_rejected_without_an_exception(headers: list[tuple[str, str]]) -> None:
    assert GUARD.check(RequestHead("POST", "/v1/chat/completions", headers)) is not None


def test_only_a_browser_of_an_allowed_page_gets_cors_headers() -> None:
    asks = {**HOST, "access-control-request-method": "POST"}
    allowed = RequestHead("OPTIONS", "/v1/chat/completions", [*asks.items(), ("origin", "http://localhost:3000")])
    assert GUARD.check(allowed) is None
    headers = GUARD.preflight_headers(allowed)
    assert headers is not None and headers["Access-Control-Allow-Origin"] == "http://localhost:3000"
    for origin in ("https://evil.com", "http://127.0.0.1:8080"):
        other = RequestHead("OPTIONS", "/v1/chat/completions", [*asks.items(), ("origin", origin)])
        assert (
            GUARD.preflight_headers(other) is None
            and GUARD.check(other) is not None
            and GUARD.cors_headers(origin) == {}
        )


def test_a_gate_that_would_be_open_to_other_machines_is_rejected() -> None:
    for host in ("0.0.0.0", "::", "10.0.0.5", "example.org"):
        with pytest.raises(CallerError, match="can be reached from other machines: set a key"):
            make_gate(host, key=None, no_key=True)
    with pytest.raises(CallerError, match="no key"):
        make_gate("127.0.0.1", key=None)
    for origin in ("*", "localhost:3000", "http://localhost:3000/path", "ftp://x"):
        with pytest.raises(CallerError, match="is not an origin"):
            make_gate("127.0.0.1", key=new_key(), origins=[origin])
    for text in ("", "short", "with a blank", "line\nbreak-and-more", "größeeeeee"):
        with pytest.raises(CallerError, match="at least 8 printable"):
            given_key(text)
    assert new_key().reveal() != new_key().reveal() and KEY not in repr(GUARD)


@pytest.mark.parametrize(
    "path, where",
    [
        ("/v1/chat/completions", ["error", "message"]),
        ("/v1/responses", ["error", "message"]),
        ("/v1/messages", ["error", "message"]),
        ("/api/chat", ["error"]),
        ("/mcp", ["error", "message"]),
        ("/v1beta/models/x:generateContent", ["error", "message"]),
    ],
)
def test_a_rejection_has_the_error_shape_of_the_api_of_the_path(path: str, where: list[str]) -> None:
    refused = GUARD.check(RequestHead("POST", path, [*HOST.items(), *JSON.items()]))
    assert refused is not None
    found: Any = refusal_body(refused, path)
    for name in where:
        found = found[name]
    assert "has no key" in found and "Authorization: Bearer" in found


@pytest.mark.parametrize("status", [400, 401, 404, 413, 429, 500, 502, 503, 504, 529])
def test_an_error_has_the_shape_of_its_dialect(status: int) -> None:
    details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    bodies: dict[Api, Any] = {api: error_body(api, status, "what", "a_code", details) for api in APIS}
    assert bodies["ollama"] == {"error": "what"}
    kind = bodies["messages"]["error"].pop("type")
    assert bodies["messages"] == {"type": "error", "error": {"message": "what", "details": details}}
    for api in ("chat", "responses", "completions"):
        error = {"message": "what", "type": kind, "param": None, "code": "a_code", "details": details}
        assert bodies[api] == {"error": error}
    google = bodies["gemini"]["error"]
    assert (google["code"], google["message"]) == (status, "what") and google["status"].isupper()
    assert google["details"][0]["reason"] == "A_CODE" and google["details"][1] == details


@pytest.mark.parametrize(
    "path, api",
    [
        ("/v1/chat/completions", "chat"),
        ("/v1/responses/compact", "responses"),
        ("/v1/messages/count_tokens", "messages"),
        ("/api/chat", "ollama"),
        ("/v1beta/models/x:streamGenerateContent", "gemini"),
        ("/", "chat"),
    ],
)
def test_the_dialect_is_derived_from_the_path(path: str, api: str) -> None:
    assert api_of_path(path) == api


# -- the servers, by sockets -------------------------------------------------------------------------------------------


def send_raw(port: int, head: str, body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
    """Send these exact bytes and return status, headers and body of the response."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body)
        data = b""
        while piece := connection.recv(65536):
            data += piece
    top, _, rest = data.partition(b"\r\n\r\n")
    first, *lines = top.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(first.split()[1]), headers, rest


BODY = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "model": "m"}).encode()


def send_post(port: int, path: str, *, key: str = KEY, **headers: str) -> tuple[int, dict[str, str], bytes]:
    given = {
        "Host": f"127.0.0.1:{port}",
        "Content-Type": "application/json",
        "Authorization": f"Bearer {key}",
        "Connection": "close",
        "Content-Length": str(len(BODY)),
        "Accept": "application/json, text/event-stream",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = [f"{name}: {value}" for name, value in given.items() if value]
    return send_raw(port, "\n".join([f"POST {path} HTTP/1.1", *lines]), BODY)


@contextmanager
def run_in_thread(entering: Callable[[], Any]) -> Iterator[Any]:
    """Enter an async context manager in a thread with its own event loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def enter() -> Any:
        context = entering()
        return context, await context.__aenter__()

    try:
        context, entered = asyncio.run_coroutine_threadsafe(enter(), loop).result(30)
        yield entered
        asyncio.run_coroutine_threadsafe(context.__aexit__(None, None, None), loop).result(30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def replay_server(tmp_path: Path) -> Iterator[tuple[int, str]]:
    path = tmp_path / "empty.jsonl"
    start_cassette(path, CassetteHead())
    with run_in_thread(lambda: ReplayServer(path, key=KEY)) as server:
        yield int(server.url.split(":")[2].split("/")[0]), "/v1/chat/completions"


@contextmanager
def model_server(tmp_path: Path) -> Iterator[tuple[int, str]]:
    import sys

    folder = str(write_package(tmp_path / "packages"))
    sys.path.insert(0, folder)
    try:
        with LocalServer(model_file(tmp_path), key=KEY) as server:
            yield int(server.address.rsplit(":", 1)[1]), "/v1/chat/completions"
    finally:
        sys.path.remove(folder)


@contextmanager
def mcp_server(tmp_path: Path) -> Iterator[tuple[int, str]]:
    from rightcall.mcp.server import http_app
    from test_mcp import OURS, over_http

    with over_http(http_app(OURS, host="127.0.0.1", key=KEY)) as url:
        yield int(url.split(":")[2].split("/")[0]), "/mcp"


SERVERS = {"replay": replay_server, "model serve": model_server, "mcp serve": mcp_server}
ACCEPTED_STATUS = {
    "replay": 404,
    "model serve": 200,
    "mcp serve": 400,
}  # response of each server to BODY when the gate accepts it


@pytest.mark.parametrize("name", SERVERS)
def test_every_server_rejects_requests_that_a_web_page_could_send(name: str, tmp_path: Path) -> None:
    with SERVERS[name](tmp_path) as (port, path):
        evil = f"evil.com:{port}"
        answers = {
            "right": send_post(port, path),
            "rebound": send_post(port, path, Host=evil, Origin=f"http://{evil}"),
            "rebound, with no origin": send_post(port, path, Host=evil),
            "across origins": send_post(port, path, Origin="http://evil.com"),
            "blind": send_post(port, path, Content_Type="text/plain", Origin="", Authorization=""),
            "a form": send_post(port, path, Content_Type="application/x-www-form-urlencoded"),
            "no key": send_post(port, path, Authorization=""),
            "another key": send_post(port, path, key="rck_something-else-altogether"),
            "too long": send_post(port, path, Content_Length="9" * 12),
            "a key beside": send_post(port, path, Authorization="", X_Api_Key=KEY),
        }
        props = send_raw(port, f"GET /props HTTP/1.1\nHost: {evil}\nConnection: close")
    codes = {what: found[0] for what, found in answers.items()}
    assert codes == {
        "right": ACCEPTED_STATUS[name],
        "rebound": 421,
        "rebound, with no origin": 421,
        "across origins": 403,
        "blind": 415,
        "a form": 415,
        "no key": 401,
        "another key": 401,
        "too long": 413,
        "a key beside": ACCEPTED_STATUS[name],
    }
    assert props[0] == 421
    for what, (code, headers, body) in answers.items():
        assert not [each for each in headers if each.startswith("access-control")], what
        assert KEY.encode() not in body
        if code >= 400 and what not in ("right", "a key beside"):
            assert headers["content-type"].startswith("application/json") and "error" in json.loads(body), what


def test_the_replay_server_requires_the_key(cassette: Path) -> None:
    assert len(load_cassette(cassette).exchanges) == 1
    with run_in_thread(lambda: ReplayServer(cassette)) as server:
        port = int(server.url.split(":")[2].split("/")[0])
        assert send_post(port, "/v1/chat/completions", key=server.key.reveal())[0] in (200, 404)
        assert send_post(port, "/v1/chat/completions")[0] == 401
        assert send_raw(port, "GET /health HTTP/1.1\nHost: localhost\nConnection: close")[0] == 200


# -- limits ------------------------------------------------------------------------------------------------------------

SMALL = RequestLimits(body=100, concurrent=1, seconds=0.3)


@contextmanager
def web(answer: Callable[[Any], Any], limits: RequestLimits = SMALL) -> Iterator[int]:
    guard = make_gate("127.0.0.1", key=Key(KEY, "t"), origins=["http://localhost:3000"], limits=limits)
    with run_in_thread(lambda: WebServer(answer, guard)) as server:
        yield server.port


@contextmanager
def asgi(answer: Callable[[Any], Any], limits: RequestLimits = SMALL) -> Iterator[int]:
    from test_mcp import over_http

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        more = True
        while more:
            more = (await receive()).get("more_body", False)
        await answer(None)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    guard = make_gate("127.0.0.1", key=Key(KEY, "t"), origins=["http://localhost:3000"], limits=limits)
    with over_http(gate_asgi(app, guard), limits=limits) as url:
        yield int(url.split(":")[2].split("/")[0])


async def answer_immediately(request: Any) -> Any:
    from aiohttp import web as aio

    return aio.Response(text="{}")


HEAD = f"POST /x HTTP/1.1\nHost: localhost\nContent-Type: application/json\nConnection: close\nx-api-key: {KEY}"


@pytest.mark.parametrize("server", [web, asgi])
def test_a_body_has_a_size_limit_while_it_arrives_and_a_time_limit(server: Any) -> None:
    chunked = f"{HEAD}\nTransfer-Encoding: chunked"
    with server(answer_immediately) as port:
        assert send_raw(port, chunked, b"2\r\n{}\r\n0\r\n\r\n")[0] == 200
        assert send_raw(port, chunked, b"c8\r\n" + b"x" * 200 + b"\r\n0\r\n\r\n")[0] == 413
        assert send_raw(port, f"{HEAD}\nContent-Length: 50", b"{")[0] == 408


@pytest.mark.parametrize("server", [web, asgi])
@pytest.mark.parametrize(
    "sent", ["", "P", "POST /x HTTP/1.1\r\nHost: localhost\r\n", "\r\n\r\n", "POST /x HTTP/1.1\r\n\r"]
)
def test_a_request_head_has_a_time_limit(server: Any, sent: str) -> None:
    with (
        server(answer_immediately, RequestLimits(head_seconds=0.3)) as port,
        socket.create_connection(("127.0.0.1", port), timeout=30) as connection,
    ):
        connection.sendall(sent.encode())
        response = connection.recv(65536)  # until the server closes the connection
        assert response == b"" or response.startswith(b"HTTP/1.1 4")


@pytest.mark.parametrize("server", [web, asgi])
def test_the_head_of_a_second_request_has_the_same_time_limit(server: Any) -> None:
    whole = f"{HEAD}\nContent-Length: 2".replace("Connection: close\n", "").replace("\n", "\r\n") + "\r\n\r\n{}"
    with (
        server(answer_immediately, RequestLimits(head_seconds=0.5)) as port,
        socket.create_connection(("127.0.0.1", port), timeout=30) as connection,
    ):
        connection.sendall(f"{whole}POST /x HTTP/1.1\r\n".encode())
        response = b""
        while piece := connection.recv(65536):
            response += piece
        assert response.startswith(b"HTTP/1.1 200") and response.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("server", [web, asgi])
def test_the_time_limit_of_the_head_does_not_apply_to_the_answer(server: Any) -> None:
    async def slow(request: Any) -> Any:
        await asyncio.sleep(0.8)
        return await answer_immediately(request)

    with server(slow, RequestLimits(head_seconds=0.5)) as port:
        assert send_raw(port, f"{HEAD}\nContent-Length: 2", b"{}")[0] == 200


@pytest.mark.parametrize("server", [web, asgi])
def test_requests_beyond_the_concurrency_limit_are_rejected(server: Any) -> None:
    started, finish = threading.Event(), threading.Event()

    async def slow(request: Any) -> Any:
        started.set()
        while not finish.is_set():
            await asyncio.sleep(0.01)
        return await answer_immediately(request)

    with server(slow, RequestLimits(concurrent=1)) as port:
        codes: list[int] = []
        first = threading.Thread(target=lambda: codes.append(send_raw(port, f"{HEAD}\nContent-Length: 2", b"{}")[0]))
        first.start()
        assert started.wait(30)
        code, headers, _ = send_raw(port, f"{HEAD}\nContent-Length: 2", b"{}")
        finish.set()
        first.join()
        assert (code, headers["retry-after"], codes) == (503, "1", [200])


@pytest.mark.parametrize("server", [web, asgi])
def test_only_an_allowed_origin_gets_cors_headers_from_every_server(server: Any) -> None:
    preflight = "OPTIONS /x HTTP/1.1\nHost: localhost\nConnection: close\nAccess-Control-Request-Method: POST\nOrigin: "
    with server(answer_immediately) as port:
        code, headers, _ = send_raw(port, preflight + "http://localhost:3000")
        assert (code, headers["access-control-allow-origin"]) == (204, "http://localhost:3000")
        code, headers, _ = send_raw(port, f"{HEAD}\nContent-Length: 2\nOrigin: http://localhost:3000", b"{}")
        assert (code, headers["access-control-allow-origin"]) == (200, "http://localhost:3000")
        code, headers, _ = send_raw(port, preflight + "http://evil.com")
        assert code == 403 and "access-control-allow-origin" not in headers
