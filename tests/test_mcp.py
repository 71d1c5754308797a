"""MCP: tools of real servers over standard input/output and HTTP, and toolsets served as MCP servers."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from rightcall import Call, Tool, Toolset, dispatch, tool
from rightcall.dispatching.hook import Invocation, Skip, Terminate
from rightcall.dispatching.result import Result
from rightcall.errors import BackendError, CallerError

pytest.importorskip("mcp")

from mcp import Client, MCPError, StdioServerParameters
from mcp.types import CallToolResult, ImageContent, TextContent

from rightcall.mcp import connect, server_of
from rightcall.mcp.client import read_output
from rightcall.mcp.server import http_app
from support import mcp_server

ODD = [sys.executable, str(Path(__file__).parent / "support" / "odd_mcp_server.py")]
STDIO = [sys.executable, str(Path(__file__).parent / "support" / "mcp_server.py")]


def call(name: str, **arguments: object) -> Call:
    return Call(name, arguments, "", "call_1")


@contextmanager
def over_http(app: Any, **limits: Any) -> Iterator[str]:
    """Serve the application with uvicorn on a free local port."""
    import uvicorn

    from rightcall.mcp.server import uvicorn_options as options

    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on", **options(**limits)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.should_exit = True
        thread.join()


# -- tools from a server -----------------------------------------------------------------------------------------------


async def dispatch_sample_calls(server: Any, **options: Any) -> tuple[Toolset, list[Result]]:
    async with connect(server, **options) as tools:
        calls = [
            call("add", a=2, b=3),
            call("fail"),
            call("say.it", **{"a-b": "hello"}),
            call("picture"),
            call("gone"),
            call("add", a="2"),
        ]
        return tools, await dispatch(calls, tools)


def assert_sample_results(tools: Toolset, results: list[Result]) -> None:
    assert [tool.name for tool in tools] == ["add", "fail", "say.it", "picture", "gone"]
    assert [refusal.tool for refusal in tools.refused] == ["bad"]
    assert [result.kind for result in results] == ["completed", "failed", "completed", "completed", "failed", "refused"]
    assert results[0].output == {"sum": 5} and next(iter(tools)).output_schema == mcp_server.SUM
    assert results[1].error and "it broke" in results[1].text
    assert results[2].output == "hello\nover"
    assert results[3].output == [{"type": "image", "data": "AA==", "mimeType": "image/png"}]
    assert "no such tool" in results[4].text


def test_the_tools_of_a_command_server_run() -> None:
    assert_sample_results(*asyncio.run(dispatch_sample_calls(STDIO)))


def test_the_tools_of_a_url_server_run() -> None:
    with over_http(mcp_server.SERVER.streamable_http_app()) as url:
        assert_sample_results(*asyncio.run(dispatch_sample_calls(url)))


def test_the_read_only_annotation_is_used_only_for_a_trusted_server() -> None:
    for trusted in (False, True):
        tools, _ = asyncio.run(dispatch_sample_calls(STDIO, trust_annotations=trusted))
        assert [tool.name for tool in tools if tool.read_only] == (["add"] if trusted else [])


def test_prefixes_keep_the_tools_of_servers_distinct() -> None:
    async def both() -> Any:
        async with connect(STDIO, prefix="one_") as first, connect(STDIO, prefix="two_") as second:
            tools = Toolset.merge({"one": first, "two": second})
            [result] = await dispatch([call("two_add", a=1, b=1)], tools)
            return len(tools), tools.clashes, result.output

    assert asyncio.run(both()) == (10, (), {"sum": 2})


def test_a_fault_of_a_server_is_reported_in_the_result() -> None:
    async def main() -> tuple[Toolset, list[Result]]:
        async with connect(ODD, seconds=2) as tools:
            calls = [call(name) for name in ("hello", "no_result", "no_answer", "hello", "dies", "hello")]
            return tools, await dispatch(calls, tools)

    tools, results = asyncio.run(main())
    assert tools.names == ("dies", "hello", "no_answer", "no_result")
    assert {clash.name for clash in tools.clashes} >= {"hello"}
    assert [result.kind for result in results] == ["completed", "failed", "failed", "completed", "failed", "failed"]
    for at, word in ((1, "answer cannot be used"), (2, "timed out"), (4, "closed"), (5, "closed")):
        assert word in results[at].text


@pytest.mark.parametrize("structured", [{"found": 0}, {}])
def test_structured_content_is_the_output_of_a_tool_even_if_it_is_empty(structured: dict[str, object]) -> None:
    text: list[Any] = [TextContent(type="text", text="nothing found")]
    assert read_output(CallToolResult(content=text, structured_content=structured, is_error=False)) == structured
    assert read_output(CallToolResult(content=text, is_error=False)) == "nothing found"


CAPTION, IMAGE = TextContent(type="text", text="a cat"), ImageContent(type="image", data="AA==", mime_type="image/png")


@pytest.mark.parametrize(
    "content",
    [[IMAGE], [IMAGE, IMAGE], [CAPTION, IMAGE], [IMAGE, CAPTION], [CAPTION, IMAGE, CAPTION]],
    ids=["an image", "two images", "a caption before", "a caption after", "two captions"],
)
def test_every_block_of_content_that_is_not_only_text_is_in_the_output(content: list[Any]) -> None:
    as_json = {
        "text": {"type": "text", "text": "a cat"},
        "image": {"type": "image", "data": "AA==", "mimeType": "image/png"},
    }
    assert read_output(CallToolResult(content=content, is_error=False)) == [as_json[block.type] for block in content]


def test_an_exception_inside_the_connection_is_raised_unchanged() -> None:
    async def main() -> None:
        async with connect(STDIO):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        asyncio.run(main())


def test_passwords_and_query_strings_of_an_address_are_not_shown() -> None:
    async def main() -> None:
        async with connect("http://me:hidden@127.0.0.1:9/mcp?key=hidden", headers={"Authorization": "hidden"}):
            pass

    with pytest.raises(BackendError) as caught:
        asyncio.run(main())
    assert "http://127.0.0.1:9/mcp" in str(caught.value) and "hidden" not in str(caught.value)


@pytest.mark.parametrize("server", ["localhost:8000", "", [], "ftp://x"])
def test_an_address_that_is_neither_a_url_nor_a_command_is_rejected(server: Any) -> None:
    with pytest.raises(CallerError, match=r"URL|command"):
        asyncio.run(dispatch_sample_calls(server))


# -- a toolset as a server ---------------------------------------------------------------------------------------------


@tool(read_only=True)
def add(a: int, b: int = 1) -> dict[str, int]:
    """Adds two numbers."""
    print("this goes nowhere near the wire")
    return {"sum": a + b}


@tool
def explode(why: str) -> str:
    """Always fails."""
    raise RuntimeError(why)


@tool
async def words(n: int) -> str:
    """Many words."""
    return "word " * n


OURS = Toolset([add, explode, words, Tool(name="odd name!", parameters={"type": "object"}, run=lambda: "odd")])


async def call_sample_tools(client: Client) -> dict[str, Any]:
    listed = await client.list_tools()
    good = await client.call_tool("add", {"a": 2, "b": 3})
    mended = await client.call_tool("add", {"A": "2"})
    wrong = await client.call_tool("add", {"b": 3})
    failed = await client.call_tool("explode", {"why": "because"})
    odd = await client.call_tool(listed.tools[3].name, {})
    with pytest.raises(MCPError, match="did you mean add"):
        await client.call_tool("ad", {})
    return {"listed": listed, "good": good, "mended": mended, "wrong": wrong, "failed": failed, "odd": odd}


def text_of_result(result: Any) -> str:
    return "".join(block.text for block in result.content)


def assert_sample_answers(answers: dict[str, Any]) -> None:
    assert [each.name for each in answers["listed"].tools][:3] == ["add", "explode", "words"]
    assert answers["listed"].tools[0].annotations.read_only_hint is True
    assert answers["good"].structured_content == {"sum": 5} and not answers["good"].is_error
    assert answers["mended"].structured_content == {"sum": 3}
    assert answers["wrong"].is_error and "a" in text_of_result(answers["wrong"])
    assert answers["failed"].is_error and "because" in text_of_result(answers["failed"])
    assert text_of_result(answers["odd"]) == "odd"


def test_a_toolset_can_be_served_in_the_process() -> None:
    async def run() -> dict[str, Any]:
        async with Client(server_of(OURS)) as client:
            return await call_sample_tools(client)

    assert_sample_answers(asyncio.run(run()))


SCRIPT = "import test_mcp; from rightcall.mcp import serve_stdio; serve_stdio(test_mcp.OURS)"


def test_a_toolset_can_be_served_over_standard_input_and_output() -> None:
    async def run() -> dict[str, Any]:
        import os

        path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        start = StdioServerParameters(command=sys.executable, args=["-c", SCRIPT], env={"PYTHONPATH": path})
        async with Client(start) as client:
            return await call_sample_tools(client)

    assert_sample_answers(asyncio.run(run()))


def test_a_toolset_can_be_served_over_http() -> None:
    async def run(url: str) -> dict[str, Any]:
        async with Client(url) as client:
            return await call_sample_tools(client)

    with over_http(http_app(OURS, host="127.0.0.1", no_key=True)) as url:
        assert_sample_answers(asyncio.run(run(url)))


def test_a_server_for_other_machines_requires_a_key() -> None:
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org"):
        with pytest.raises(CallerError, match="key"):
            http_app(OURS, host=host, no_key=True)
    for host in ("127.0.0.1", "::1", "localhost"):
        http_app(OURS, host=host, no_key=True)
        with pytest.raises(CallerError, match="key"):
            http_app(OURS, host=host)


def test_requests_without_the_key_are_rejected() -> None:
    import urllib.error
    import urllib.request

    async def run(url: str, headers: dict[str, str]) -> int:
        async with connect(url, headers=headers) as tools:
            return len(tools)

    with over_http(http_app(OURS, host="127.0.0.1", key="open-sesame")) as url:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"x-api-key": ""}):
            with pytest.raises(urllib.error.HTTPError) as error:
                urllib.request.urlopen(urllib.request.Request(url, headers=headers))
            assert error.value.code == 401
            error.value.close()
        for headers in ({"authorization": "Bearer open-sesame"}, {"x-api-key": "open-sesame"}):
            assert asyncio.run(run(url, headers)) == 4


def test_structured_content_is_shortened_like_the_text() -> None:
    @tool
    def much(n: int) -> dict[str, str]:
        return {"text": "x" * n, "rest": "small"}

    async def main() -> Any:
        async with Client(server_of([much])) as client:
            return await client.call_tool("much", {"n": 1_000_000})

    answer = asyncio.run(main())
    assert answer.structured_content["rest"] == "small"
    assert len(answer.structured_content["text"]) < 10_000 and len(text_of_result(answer)) < 10_000


def test_hooks_see_calls_to_a_server() -> None:
    def gate(invocation: Invocation) -> Skip | Terminate | None:
        return {"add": Skip({"sum": 0}, "cached"), "explode": Terminate("no more")}.get(invocation.tool.name)  # type: ignore[return-value]

    async def run() -> tuple[Any, Any]:
        async with Client(server_of(OURS, hooks=[gate])) as client:
            return await client.call_tool("add", {"a": 1}), await client.call_tool("explode", {"why": "x"})

    skipped, stopped = asyncio.run(run())
    assert skipped.structured_content == {"sum": 0} and stopped.is_error and "no more" in text_of_result(stopped)


@pytest.mark.parametrize("policy, answered", [("off", "1"), ("safe", "12"), ("lenient", "123")])
def test_the_repair_policy_of_a_server_determines_which_calls_are_repaired(policy: Any, answered: str) -> None:
    """The first call is valid, the second needs a certain repair, the third a guess."""

    @tool
    def light(state: Literal["on", "off"], level: int = 1) -> str:
        """Switches the light."""
        return f"{state} {level}"

    given: list[dict[str, Any]] = [{"state": "on"}, {"STATE": "on", "level": "2"}, {"state": ["off"]}]

    async def run() -> str:
        async with Client(server_of([light], repair=policy)) as client:
            results = [await client.call_tool("light", each) for each in given]
        return "".join(str(n) for n, each in enumerate(results, 1) if not each.is_error)

    assert asyncio.run(run()) == answered


def test_an_unknown_repair_policy_is_rejected_before_anything_is_served() -> None:
    with pytest.raises(CallerError, match="repair='lax' is not one of off, safe, lenient"):
        server_of(OURS, repair="lax")


def test_without_the_extra_the_error_names_the_package_to_install() -> None:
    code = "import sys; sys.modules['mcp'] = None\nfrom rightcall.mcp.server import server_of\nserver_of([])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "rightcall[mcp]" in done.stderr
