"""`wrap`: an `openai` or `anthropic` client whose answers contain only runnable calls.

    client = wrap(OpenAI())
    client.chat.completions.create(model=..., messages=..., tools=[...])

The result is an ordinary client of its SDK: only the bytes of an answer to a request with tools are rewritten, below
the SDK, before it parses them. Its streams, helpers and types are those of the SDK.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from rightcall.backends.rewrite import Refused, Rewriter
from rightcall.errors import CallerError
from rightcall.formats.spec import Format
from rightcall.parsing.options import Limits, Policy, ReasoningCalls, Rescue
from rightcall.tools.toolset import ToolLike, Toolset
from rightcall.types import Json, Reply

Client = TypeVar("Client")
_APIS = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages"}
_DROPPED = frozenset(("content-length", "content-encoding", "transfer-encoding"))


def wrap(
    client: Client,
    *,
    tools: Toolset | Iterable[ToolLike] | None = None,
    format: str | Format = "auto",
    reasoning: Literal["auto", "open", "off"] = "auto",
    repair: Policy | Mapping[str, Policy] = "safe",
    rescue: Rescue = "safe",
    reasoning_calls: ReasoningCalls = "safe",
    refused: Refused = "error",
    on_reply: Callable[[Reply], None] | None = None,
    limits: Limits | None = None,
) -> Client:
    """Return a copy of an `openai` or `anthropic` client whose answers have reliable tool calls, streamed or not:
    `chat.completions`, `responses` and `messages`. Calls are read, repaired and checked as by `read`, whether they
    arrived as calls or leaked into the text; runnable calls are kept. Requests without tools, and everything else, are
    unchanged.

    - `client`: sync or async.
    - `tools`: the callable tools, as in `parse`; None: those that each request declares.
    - `format`, `reasoning`, `repair`, `rescue`, `reasoning_calls`, `limits`: as in `read`.
    - `refused`: for an answer with calls of which none is runnable. "error": the client raises its own error for status
      422, which says what the model should send instead; "drop": the answer without the calls; "pass": the answer with
      the calls as they were written.
    - `on_reply`: called with every reply, to see repairs and rejected calls.

    Raises `CallerError` for a client of another library.
    """
    inner = getattr(client, "_client", None)
    copy = getattr(client, "copy", None)
    base = _http_client_class(inner)
    if base is None or not callable(copy):
        raise CallerError(
            f"wrap takes a client of openai or anthropic, not {type(client).__name__}; "
            "give the answers of others to rightcall.read or rightcall.Stream"
        )
    reading: Json = {"format": format, "reasoning": reasoning, "repair": repair, "rescue": rescue}
    reading |= {"reasoning_calls": reasoning_calls, "limits": limits}
    toolset = Toolset.of(tools)

    def rewriter(request: Any) -> Rewriter | None:
        """Return the `Rewriter` for the response to this request; None if it must not be rewritten."""
        found = _parse_request(request, toolset)
        if found is None:
            return None
        api, declared, streamed = found
        return Rewriter(api, {**reading, "tools": declared}, streamed=streamed, refused=refused, on_reply=on_reply)

    made: Client = copy(http_client=_rewriting_client(base, inner, rewriter))
    return made


def _http_client_class(inner: Any) -> type[Any] | None:
    """Return the httpx class (`Client` or `AsyncClient`) that `inner`, the HTTP client inside an SDK client, is built
    on; None for any other object."""
    for each in type(inner).__mro__:
        if each.__module__.split(".")[0] in ("httpx", "httpx2") and each.__name__ in ("Client", "AsyncClient"):
            return each
    return None


def _parse_request(request: Any, tools: Toolset | None) -> tuple[str, Toolset, bool] | None:
    """Return API, tools and `stream` of an HTTP request whose answer may contain calls; None for any other request.
    `tools` replace those that the request declares."""
    path = urlsplit(str(request.url)).path
    api = next((api for end, api in _APIS.items() if path.endswith(end)), "")
    if request.method != "POST" or not api:
        return None
    try:
        body = json.loads(request.content)
    except (ValueError, RecursionError, AttributeError):
        return None
    if not isinstance(body, dict) or not (body.get("tools") or tools is not None):
        return None
    declared = Toolset.lenient(body["tools"]) if tools is None else tools
    return api, declared, body.get("stream") is True


def _rewriting_client(base: type[Any], inner: Any, rewriter: Callable[[Any], Rewriter | None]) -> Any:
    """Return an HTTP client of the class `base` that sends through `inner` and rewrites the responses for which
    `rewriter(request)` returns a `Rewriter`."""
    library = __import__(base.__module__.split(".")[0])

    class Trusting(base):  # type: ignore[misc]
        def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            """Send a request through `inner` and return its response, rewritten if `rewriter` returns a rewriter for
            it."""
            made = rewriter(request)
            response = inner.send(request, stream=stream, **options)
            return response if made is None else _rewrite_response(library, request, response, made)

        def close(self) -> None:
            inner.close()

    class AsyncTrusting(base):  # type: ignore[misc]
        async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            """Send a request through `inner` and return its response, rewritten if `rewriter` returns a rewriter for
            it."""
            made = rewriter(request)
            response = await inner.send(request, stream=stream, **options)
            if made is not None and not made.streamed:
                await response.aread()
            return response if made is None else _rewrite_response(library, request, response, made)

        async def aclose(self) -> None:
            await inner.aclose()

    kind = AsyncTrusting if base.__name__ == "AsyncClient" else Trusting
    return kind(timeout=inner.timeout, follow_redirects=inner.follow_redirects)


def _rewrite_response(library: Any, request: Any, response: Any, rewriter: Rewriter) -> Any:
    """Return a new response with the calls repaired by `rewriter`, streamed or whole. A response with another status
    than 200 is returned as it is."""
    if response.status_code != 200:
        return response
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _DROPPED]
    if rewriter.streamed:
        return library.Response(
            200, headers=headers, stream=_rewritten_stream(library, response, rewriter), request=request
        )
    content = rewriter.feed(response.read()) + rewriter.close()
    return library.Response(rewriter.status, headers=headers, content=content, request=request)


def _rewritten_stream(library: Any, response: Any, rewriter: Rewriter) -> Any:
    """Return a byte stream, sync and async, that passes the body of the response through `rewriter` while it
    arrives."""

    class RewrittenBody(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            for piece in response.iter_bytes():
                if made := rewriter.feed(piece):
                    yield made
            yield rewriter.close()

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in response.aiter_bytes():
                if made := rewriter.feed(piece):
                    yield made
            yield rewriter.close()

        def close(self) -> None:
            response.close()

        async def aclose(self) -> None:
            await response.aclose()

    return RewrittenBody()
