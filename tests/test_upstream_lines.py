"""Upstream connections: answers are parsed independently of chunking, and invalid answers are reported."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall.errors import BodyError, TransportError
from rightcall.serve.http_answers import MAX_HEAD, HttpFault, HttpReading
from rightcall.serve.proxy_settings import ProxySettings, UpstreamSettings
from rightcall.serve.upstream_link import UpstreamLink

# A self-signed certificate for localhost, which only these tests trust.
CERTIFICATE = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgyL7hZv//X390gEvs
wlpMOq0B3X/n2CXfPF12gmi0oQehRANCAAQLyvnX1h4br07XP81BsxruGotDrwOv
VIURc53FLvihmqOOK4uD+5BzhOpyJQ2d0kVvpW0bhZdZtMFi6AhIHq7+
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUbADGIsDiop4QV9ArBSGI+iJ6aqEwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTExNjA5MjU1OVoYDzIxMjYxMDIz
MDkyNTU5WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQLyvnX1h4br07XP81BsxruGotDrwOvVIURc53FLvihmqOOK4uD+5Bz
hOpyJQ2d0kVvpW0bhZdZtMFi6AhIHq7+o28wbTAdBgNVHQ4EFgQUsQRLK8eDzKpi
YX6JMYtpjTqeLr8wHwYDVR0jBBgwFoAUsQRLK8eDzKpiYX6JMYtpjTqeLr8wGgYD
VR0RBBMwEYIJbG9jYWxob3N0hwR/AAABMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZI
zj0EAwIDSAAwRQIgTCH+UIZ5bAQhjZbE5W5GVC660Tsnj7u06gQO87R+utECIQC9
RhGrfW4LpeB8hRI2EHP5LrPSn50ZjJqpcIjYg3ATLg==
-----END CERTIFICATE-----
"""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
PIECES = st.lists(st.binary(min_size=1, max_size=40) | st.sampled_from([b"\r\n0\r\n\r\n", b"x" * 5000]), max_size=6)


def in_chunks(pieces: list[bytes], end: bytes = b"0\r\n\r\n") -> bytes:
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    return head + b"".join([b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces]) + end


def feed_answer(answer: bytes, cuts: list[int], method: str = "POST") -> tuple[bytes, HttpReading]:
    reading, at = HttpReading(method), [0, *sorted({cut % len(answer) for cut in cuts}), len(answer)]
    pieces = [reading.feed(answer[begin:end]) for begin, end in pairwise(at)]
    return b"".join(pieces), reading


@given(PIECES, st.lists(st.integers(0, 30_000), max_size=30), st.sampled_from([b"", b"X-Sum: 1\r\n", b"a: b\nc: d\n"]))
def test_a_chunked_body_is_independent_of_chunking(pieces: list[bytes], cuts: list[int], trailer: bytes) -> None:
    body, reading = feed_answer(in_chunks(pieces, b"0\r\n" + trailer + b"\r\n"), cuts)
    assert body == b"".join(pieces)
    assert reading.is_whole and reading.is_reusable


def test_an_answer_is_parsed_the_same_in_any_two_pieces_or_byte_by_byte() -> None:
    answer = b"HTTP/1.1 100 Continue\r\n\r\n" + in_chunks([b"abc", b"d" * 300, b"\r\n"], b"0;x=y\r\nA: b\r\n\r\n")
    for cuts in ([], list(range(len(answer))), *[[at] for at in range(len(answer))]):
        body, reading = feed_answer(answer, cuts)
        assert (body, reading.is_reusable) == (b"abc" + b"d" * 300 + b"\r\n", True)


@given(st.binary(max_size=200), st.lists(st.integers(0, 300), max_size=9), st.booleans())
def test_a_body_with_a_length_ends_after_that_length(body: bytes, cuts: list[int], is_followed: bool) -> None:
    answer = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    received, reading = feed_answer(answer + b"HTTP" * is_followed, cuts)
    assert received == body
    assert reading.is_whole and reading.is_reusable is not is_followed


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    body, reading = feed_answer(HEAD + b"\r\nabc", [])
    assert (body, reading.is_whole) == (b"abc", False)
    reading.close()
    assert reading.is_whole and not reading.is_reusable


COMPRESSED = {
    "gzip": gzip.compress(b"a" * 9000),
    "x-gzip": gzip.compress(b"a" * 4000) + gzip.compress(b"a" * 5000),
    "deflate": zlib.compress(b"a" * 9000),
    " Deflate": zlib.compress(b"a" * 9000)[2:-4],
}


@pytest.mark.parametrize("packing", COMPRESSED)
@pytest.mark.parametrize("cut", [1, 3, 10_000])
def test_compressed_bodies_are_decompressed(packing: str, cut: int) -> None:
    head = f"Content-Encoding: {packing}\r\nContent-Length: {len(COMPRESSED[packing])}\r\n\r\n"
    answer = HEAD + head.encode() + COMPRESSED[packing]
    assert feed_answer(answer, list(range(0, len(answer), cut)))[0] == b"a" * 9000


def gzip_answer(body: bytes) -> bytes:
    return HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body


INVALID_ANSWERS = {
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n",
    "HTTP/2": b"HTTP/2 200\r\n\r\n",
    "a status of two digits": b"HTTP/1.1 20 OK\r\n\r\n",
    "a header without a name": b"HTTP/1.1 200 OK\r\n: x\r\n\r\n",
    "a header without a colon": b"HTTP/1.1 200 OK\r\nabc\r\n\r\n",
    "a blank before the colon": b"HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\n",
    "a head without an end": HEAD + b"X: " + b"y" * MAX_HEAD,
    "two lengths": HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "a length below zero": HEAD + b"Content-Length: -1\r\n\r\n",
    "another coding": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    "a chunk that is longer": in_chunks([], b"1\r\nabc\r\n"),
    "a chunk without a length": in_chunks([], b"\r\nabc\r\n"),
    "a chunk of a length below zero": in_chunks([], b"-3\r\nabc\r\n"),
    "a chunk with a sign": in_chunks([], b"+3\r\nabc\r\n"),
    "a chunk's line without an end": in_chunks([], b"3;" + b"x" * 2000),
    "a trailer without an end": in_chunks([], b"0\r\n" + b"a: b\r\n" * 20_000),
    "a line end within a header": HEAD + b"X: a\rContent-Length: 9\r\nContent-Length: 1\r\n\r\n",
    "nothing within a header": HEAD + b"X: a\0b\r\n\r\n",
    "a coding with a blank that is none": HEAD + "Transfer-Encoding: chunked\u2028\r\n\r\n".encode(),
    "a packed body that is cut": gzip_answer(gzip.compress(b"hello hello")[:-9]),
    "a packed body with something behind it": gzip_answer(gzip.compress(b"hello") + b"junk"),
    "a body packed in very many parts": gzip_answer(gzip.compress(b"") * 5000),
    "a packing nobody knows": HEAD + b"Content-Encoding: zstd\r\nContent-Length: 3\r\n\r\n",
    "what was never packed": HEAD + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    "another protocol from now on": b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\n\r\n",
}


@pytest.mark.parametrize("end", ["\r\n", "\n"])
@pytest.mark.parametrize("blank", ["\r\n", "\n"])
def test_lines_may_end_with_crlf_or_lf(end: str, blank: str) -> None:
    answer = f"HTTP/1.1 200 OK{end}Content-Length: 2{end}{blank}ab".encode()
    for step in (1, len(answer)):
        assert feed_answer(answer, list(range(0, len(answer), step)))[0] == b"ab"


def test_a_connection_with_two_conflicting_lengths_is_not_reused() -> None:
    _, reading = feed_answer(HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", [])
    assert reading.is_whole and not reading.is_reusable


@pytest.mark.parametrize("case", INVALID_ANSWERS)
@pytest.mark.parametrize("step", [7, 300_000])
def test_an_invalid_answer_is_a_fault(case: str, step: int) -> None:
    answer = INVALID_ANSWERS[case]
    with pytest.raises(HttpFault):
        feed_answer(answer, list(range(0, len(answer), step)))


def test_a_decompression_bomb_is_a_fault() -> None:
    bomb = zlib.compress(b"0" * (1 << 27))
    with pytest.raises(HttpFault):
        feed_answer(HEAD + b"Content-Encoding: deflate\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb, [])


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1", HEAD + b"Content-Length: 3\r\n\r\nab", in_chunks([b"ab"], b"")])
def test_an_incomplete_answer_is_a_fault(answer: bytes) -> None:
    reading = HttpReading("POST")
    reading.feed(answer)
    with pytest.raises(HttpFault):
        reading.close()


# -- connections -------------------------------------------------------------------------------------------------------

Serving = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listen(serve: Serving, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    open_ones: set[asyncio.StreamWriter] = set()

    async def serve_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_ones.add(writer)
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            open_ones.discard(writer)

    server = await asyncio.start_server(serve_connection, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in list(open_ones):
            writer.transport.abort()
        await asyncio.sleep(0.01)


class Echo:
    """Echoes the first line of each request over connections that stay open."""

    def __init__(self, *, requests: int = 1000) -> None:
        self._requests = requests
        self.heads: list[str] = []
        self.connections = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        for _ in range(self._requests):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            line = head.partition("\r\n")[0]
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(line)}\r\n\r\n{line}".encode())


async def ask(url: str, *paths: str, proxy: str = "", ca: str = "") -> list[str]:
    upstream = UpstreamSettings(url=url, proxy=proxy, ca=ca)
    link = UpstreamLink(upstream, ProxySettings(upstream=(upstream,), connect_seconds=20))
    await link.connect()
    bodies = []
    try:
        for path in paths:
            async with link.opened(url + path, None, {"x": "y"}, "GET") as answer:
                bodies.append((await answer.whole(1000)).decode())
            await asyncio.sleep(0.01)
    finally:
        await link.close()
    return bodies


def write_certificate(folder: Path) -> tuple[str, ssl.SSLContext]:
    file = folder / "localhost.pem"
    file.write_text(CERTIFICATE)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(file)
    return str(file), tls


def test_a_connection_is_reused() -> None:
    async def story() -> None:
        server = Echo()
        async with listen(server) as port:
            assert await ask(f"http://127.0.0.1:{port}", "/a", "/b?c=d") == ["GET /a HTTP/1.1", "GET /b?c=d HTTP/1.1"]
        assert server.connections == 1
        assert f"host: 127.0.0.1:{port}\r\n" in server.heads[0].lower()

    asyncio.run(story())


def test_a_closed_idle_connection_is_replaced() -> None:
    async def story() -> None:
        server = Echo(requests=1)
        async with listen(server) as port:
            assert len(await ask(f"http://127.0.0.1:{port}", "/a", "/b", "/c")) == 3
        assert server.connections == 3

    asyncio.run(story())


async def reject_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def test_tls_accepts_only_a_trusted_certificate(tmp_path: Path) -> None:
    async def story() -> None:
        file, tls = write_certificate(tmp_path)
        async with listen(Echo(), tls) as port:
            for host in ("localhost", "127.0.0.1"):
                assert await ask(f"https://{host}:{port}", "/a", "/b", ca=file) == [
                    "GET /a HTTP/1.1",
                    "GET /b HTTP/1.1",
                ]
            with pytest.raises(TransportError, match=r"certificate.*have it trusted"):
                await ask(f"https://127.0.0.1:{port}", "/a")
        async with listen(reject_at_once) as port:
            with pytest.raises(TransportError, match="does it speak https"):
                await ask(f"https://127.0.0.1:{port}", "/a")

    asyncio.run(story())


def test_an_http_proxy_forwards_plain_requests_and_tunnels_tls(tmp_path: Path) -> None:
    async def story() -> None:
        file, tls = write_certificate(tmp_path)
        plain = Echo()
        lines: list[str] = []

        async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lines.extend(head.split("\r\n"))
            host, _, port = head.split(" ")[1].rpartition(":")
            far, near = await asyncio.open_connection(host, int(port))
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(copy_stream(reader, near), copy_stream(far, writer))

        async with listen(plain) as port:
            proxy = f"http://ann:s%40fe@127.0.0.1:{port}"
            assert await ask("http://far.example", "/a", proxy=proxy) == ["GET http://far.example/a HTTP/1.1"]
            assert "Proxy-Authorization: Basic YW5uOnNAZmU=" in plain.heads[0]
        async with listen(Echo(), tls) as port, listen(tunnel) as through:
            proxy = f"http://127.0.0.1:{through}"
            assert await ask(f"https://localhost:{port}", "/a", proxy=proxy, ca=file) == ["GET /a HTTP/1.1"]
            assert lines[0] == f"CONNECT localhost:{port} HTTP/1.1"

    asyncio.run(story())


async def copy_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


def test_a_rejecting_http_proxy_is_reported() -> None:
    async def reject(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 X\r\nContent-Length: 0\r\n\r\n")

    async def story() -> None:
        async with listen(reject) as port:
            with pytest.raises(TransportError, match="407"):
                await ask("https://far.example", "/a", proxy=f"http://127.0.0.1:{port}")

    asyncio.run(story())


def test_a_slow_reader_slows_the_server_down_without_buffering_the_answer() -> None:
    size = 40_000_000
    sent = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(size // 100_000):
            writer.write(b"x" * 100_000)
            await writer.drain()
            sent += 100_000

    async def story() -> None:
        async with listen(pour) as port:
            upstream = UpstreamSettings(url=f"http://127.0.0.1:{port}")
            link = UpstreamLink(upstream, ProxySettings(upstream=(upstream,)))
            await link.connect()
            async with link.opened(upstream.url, None, {}, "GET") as answer:
                pieces = answer.pieces()
                received = len(await anext(pieces))
                before = -1
                while before != sent:
                    before = sent
                    await asyncio.sleep(0.05)
                assert sent < size // 2
                received += sum([len(piece) async for piece in pieces])
                assert received == size
            await link.close()

    asyncio.run(story())


def test_a_request_with_a_line_break_in_a_header_or_address_is_not_sent() -> None:
    async def story() -> None:
        server = Echo()
        async with listen(server) as port:
            upstream = UpstreamSettings(url=f"http://127.0.0.1:{port}")
            link = UpstreamLink(upstream, ProxySettings(upstream=(upstream,)))
            await link.connect()
            for path, headers in (("/a", {"x": "y\r\nz: 1"}), ("/a", {"x\n": "y"}), ("/a b", {})):
                with pytest.raises(TransportError):
                    async with link.opened(upstream.url + path, b"{}", headers):
                        pass
            await link.close()
        assert server.heads == []

    asyncio.run(story())


def test_breaking_off_an_answer_raises_a_body_error() -> None:
    async def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
        await reader.read()

    async def story() -> None:
        async with listen(begin) as port:
            upstream = UpstreamSettings(url=f"http://127.0.0.1:{port}")
            link = UpstreamLink(upstream, ProxySettings(upstream=(upstream,)))
            await link.connect()
            async with link.opened(upstream.url, b"{}", {}) as answer:
                pieces = answer.pieces()
                assert await anext(pieces) == b"abc"
                link.break_off()
                with pytest.raises(BodyError):
                    await anext(pieces)
            await link.close()

    asyncio.run(story())
