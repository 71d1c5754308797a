"""What the proxy is told: one table of fields, from which flags, environment variables and TOML keys all take their
names, their limits and their words.

    --max-retries 3      RIGHTCALL_SERVE_MAX_RETRIES=3      max_retries = 3

`settings_source` reads them; nothing here looks at a file or at the environment.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta

from rightcall.api_names import Api
from rightcall.backends.exchange import Timeouts
from rightcall.backends.request import Mode
from rightcall.constrain.grammars import Server
from rightcall.parsing.options import Policy, ReasoningCalls, Rescue
from rightcall.redaction.key import Key
from rightcall.request_gate import Gate, RequestLimits, is_loopback, make_gate

_LIMITS, _TIMES = RequestLimits(), Timeouts()

LISTENING = "Where it listens, and for whom"
CALLS = "How calls are made right"
STREAMS = "How answers are streamed"
UPSTREAMS = "The servers behind it"
BOUNDS = "Limits"
WATCHING = "What is written down"


def said(help: str, group: str, metavar: str = "", **bounds: Any) -> Meta:
    """A setting in words: what it does, the group of the help page it stands in, and what its value is called."""
    return Meta(description=help, extra={"group": group, "metavar": metavar}, **bounds)


Seconds = float


class UpstreamSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One server behind the proxy: a table `[[upstream]]`.

    - `url`: its base URL, with or without `/v1`.
    - `api`: what it speaks; guessed from the URL where it is left out.
    - `name`: for routes, logs and metrics; its host and port where it is left out.
    - `api_key_env`: the variable that holds its key; OPENAI_API_KEY and the like where it is left out.
    - `profile`: what kind of server it is, if you know; else it is recognised.
    - `models`: names and globs of the models that it is asked for; all where it is left out.
    - `headers`: go with every request.
    - `ca`: a file with the certificates to trust.
    - `proxy`: the address of an HTTP proxy to reach it through; HTTPS_PROXY and the like where it is left out.
    - `key`: its key, found in the environment; no file can hold it.
    """

    url: str
    api: Api = "chat"
    name: str = ""
    api_key_env: str = ""
    profile: str = ""
    models: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    ca: str = ""
    proxy: str = ""
    key: Key | None = None


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What holds for the models of one name or glob: a table `[models."qwen*"]`. What is left out is as for all.

    - `upstream`: the names of the upstreams to ask, in this order.
    - `alias`: the name that the upstream knows the model by.
    - `mode`, `format`, `repair`, `rescue`, `reasoning_calls`: as the settings of these names.
    - `grammar`: in the form of which server a grammar is sent, where the upstream is of no known kind.
    """

    upstream: tuple[str, ...] = ()
    alias: str = ""
    mode: Mode | None = None
    format: str | None = None
    grammar: Server | None = None
    repair: Policy | None = None
    rescue: Rescue | None = None
    reasoning_calls: ReasoningCalls | None = None


class ProxySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that the proxy is told. Made by `SettingsSource.read`, which checks it; each field says what it is."""

    upstream: Annotated[
        tuple[UpstreamSettings, ...],
        said("A server to ask; several times for several. API= says what it speaks.", UPSTREAMS, "[API=]URL"),
    ] = ()
    ca: Annotated[str, said("A file with certificates to trust, for upstreams with https.", UPSTREAMS, "FILE")] = ""
    connect_seconds: Annotated[Seconds, said("Limit for connecting.", UPSTREAMS, "SECONDS", gt=0)] = _TIMES.connect
    first_byte_seconds: Annotated[Seconds, said("Limit until an answer begins.", UPSTREAMS, "SECONDS", gt=0)] = (
        _TIMES.first_byte
    )
    idle_seconds: Annotated[Seconds, said("Limit between two pieces.", UPSTREAMS, "SECONDS", gt=0)] = _TIMES.idle
    total_seconds: Annotated[Seconds, said("Limit for an answer with all its tries.", UPSTREAMS, "SECONDS", gt=0)] = (
        _TIMES.total
    )

    host: Annotated[str, said("The address to listen on; others than this machine need a key.", LISTENING, "HOST")] = (
        "127.0.0.1"
    )
    port: Annotated[int, said("The port; 0 takes a free one.", LISTENING, "N", ge=0, le=65535)] = 8787
    key_env: Annotated[
        str,
        said(
            "Ask for a key: the value of this environment variable. Clients may send it as theirs.", LISTENING, "NAME"
        ),
    ] = ""
    no_key: Annotated[bool, said("Let other machines in without a key. Whoever reaches it may use it.", LISTENING)] = (
        False
    )
    allow_origin: Annotated[
        tuple[str, ...], said("Web pages that may use it, e.g. http://localhost:3000.", LISTENING, "ORIGIN")
    ] = ()
    allow_host: Annotated[
        tuple[str, ...], said("A further name that this machine is called by.", LISTENING, "NAME")
    ] = ()
    stop_seconds: Annotated[Seconds, said("How long streams may go on after Ctrl-C.", LISTENING, "SECONDS", ge=0)] = (
        10.0
    )

    mode: Annotated[
        Mode,
        said(
            "How tools are offered: by the server's own means, in the prompt, held to a grammar, or what works.", CALLS
        ),
    ] = "auto"
    format: Annotated[str, said("What calls in text are read as; auto finds out.", CALLS, "NAME")] = "auto"
    format_file: Annotated[str, said("A TOML file with a format of one's own, to read calls as.", CALLS, "FILE")] = ""
    repair: Annotated[
        Policy,
        said(
            "How calls are put right. off: change nothing; safe: guess for read-only tools only; lenient: guess.", CALLS
        ),
    ] = "safe"
    rescue: Annotated[
        Rescue,
        said("Calls that a server left in its text. off: text; safe: where the answer is nothing else.", CALLS),
    ] = "safe"
    reasoning_calls: Annotated[
        ReasoningCalls, said("Calls in the reasoning: never, or those that end an answer of nothing else.", CALLS)
    ] = "safe"
    guard: Annotated[
        Literal["none", "parse", "full"],
        said(
            "What the model is asked again for: nothing; calls that cannot be read; also loops and announced calls.",
            CALLS,
        ),
    ] = "parse"
    max_retries: Annotated[int, said("How often the model is asked again.", CALLS, "N", ge=0, le=20)] = 2
    retry_seconds: Annotated[Seconds, said("No more asking after so long.", CALLS, "SECONDS", ge=0)] = 120.0
    give_up: Annotated[
        Literal["pass", "error"],
        said("When that was not enough: pass a call that only breaks its schema on as written, or answer 400.", CALLS),
    ] = "pass"

    stream_calls: Annotated[
        Literal["whole", "live"], said("A call goes out when it is whole and right, or while it arrives.", STREAMS)
    ] = "whole"
    hold_headers: Annotated[
        Seconds, said("How long the head of an answer waits for its first event to be right.", STREAMS, "SECONDS", ge=0)
    ] = 20.0
    keep_alive: Annotated[
        Seconds, said("A sign of life after so much silence; 0 for none.", STREAMS, "SECONDS", ge=0)
    ] = 15.0

    body_bytes: Annotated[int, said("The longest body of a request.", BOUNDS, "N", ge=1000)] = _LIMITS.body
    header_count: Annotated[int, said("The most headers of a request.", BOUNDS, "N", ge=10)] = _LIMITS.headers
    header_bytes: Annotated[int, said("The longest head of a request.", BOUNDS, "N", ge=1000)] = _LIMITS.header_bytes
    head_seconds: Annotated[Seconds, said("Limit for a head to arrive.", BOUNDS, "SECONDS", gt=0)] = (
        _LIMITS.head_seconds
    )
    body_seconds: Annotated[Seconds, said("Limit for a body to arrive.", BOUNDS, "SECONDS", gt=0)] = _LIMITS.seconds
    concurrency: Annotated[int, said("Requests at the same time; more get 503.", BOUNDS, "N", ge=1)] = 1000
    store_seconds: Annotated[
        Seconds, said("How long answers are kept for previous_response_id.", BOUNDS, "SECONDS", ge=0)
    ] = 3600.0
    store_bytes: Annotated[int, said("How much of them is kept in memory.", BOUNDS, "N", ge=0)] = 64_000_000

    log: Annotated[
        str, said("One JSON line for each request, to this file; - is standard error.", WATCHING, "FILE|-")
    ] = ""
    log_content: Annotated[
        bool, said("Requests and answers in the log too, without secrets known by their shape.", WATCHING)
    ] = False
    trace: Annotated[bool, said("OpenTelemetry: a span for each request. Needs the extra otel.", WATCHING)] = False
    capture: Annotated[
        str, said("Append what was asked and answered to this file, for `rightcall dataset import`.", WATCHING, "FILE")
    ] = ""
    capture_sample: Annotated[
        float, said("The share of requests that is captured, 0 to 1.", WATCHING, "NUMBER", ge=0, le=1)
    ] = 1.0
    record: Annotated[str, said("Cassettes of what goes to and comes from the upstreams.", WATCHING, "FOLDER")] = ""
    record_bytes: Annotated[int, said("No more is recorded after so many bytes.", WATCHING, "N", ge=0)] = 1_000_000_000

    models: dict[str, ModelSettings] = {}
    key: Key | None = None  # the value of `key_env`

    def gate(self) -> Gate:
        """The guard of the proxy's door. Raises `CallerError` where others could come in without a key."""
        return make_gate(
            self.host,
            key=self.key,
            no_key=self.no_key or is_loopback(self.host),
            open_to_all=self.no_key,
            origins=self.allow_origin,
            hosts=self.allow_host,
            limits=RequestLimits(
                body=self.body_bytes,
                headers=self.header_count,
                header_bytes=self.header_bytes,
                concurrent=self.concurrency,
                head_seconds=self.head_seconds,
                seconds=self.body_seconds,
            ),
            bare_bodies=True,  # as the servers do that it stands for: LiteLLM sends Ollama nothing but the body
        )

    @property
    def timeouts(self) -> Timeouts:
        """How long is waited for an upstream."""
        return Timeouts(
            connect=self.connect_seconds,
            first_byte=self.first_byte_seconds,
            idle=self.idle_seconds,
            total=self.total_seconds,
        )

    @property
    def wants_content(self) -> bool:
        """Does anybody want what was written in requests and answers?"""
        return bool(self.capture or (self.log and self.log_content))


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One field of `ProxySettings` that can be set: by a flag, a variable and a TOML key of the same name."""

    name: str
    type: Any
    default: Any
    help: str
    group: str
    metavar: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


PREFIX = "RIGHTCALL_SERVE_"


def _setting(field: msgspec.structs.FieldInfo) -> Setting | None:
    meta = next((each for each in getattr(field.type, "__metadata__", ()) if isinstance(each, Meta)), None)
    if meta is None or meta.extra is None:
        return None
    return Setting(
        name=field.name,
        type=field.type,
        default=field.default,
        help=meta.description or "",
        group=meta.extra["group"],
        metavar=meta.extra["metavar"] or "|".join(words_of(field.type)),
    )


def words_of(kind: Any) -> list[str]:
    """What may be written, in the order it was declared, for a setting that is one of a few words."""
    if get_origin(kind) is Literal:
        return [str(each) for each in get_args(kind)]
    inner = get_args(kind)[:1] if get_origin(kind) is Annotated else get_args(kind)
    return next((words for each in inner if (words := words_of(each))), [])


SETTINGS: dict[str, Setting] = {
    each.name: each for field in msgspec.structs.fields(ProxySettings) if (each := _setting(field)) is not None
}
