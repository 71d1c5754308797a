"""A model on this machine: llama.cpp in a child process, with the Chat API on loopback.

    with LocalBackend("smollm2") as backend:
        backend.complete_sync(Request(messages=[{"role": "user", "content": "Hi"}]))

    with LocalServer("any.gguf") as server:
        server.base_url  # "http://127.0.0.1:43211/v1"
        server.key.reveal()  # the key that clients must send, created at this start

The child is a separate process because a model can crash its process (memory, a missing CPU instruction) and must not
crash the caller's. It ends with `close`, and with this process in any case: it watches a pipe that this process holds
open.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from types import TracebackType
from typing import IO, Any, Self

from rightcall.backends import llama_child
from rightcall.backends.exchange import Timeouts
from rightcall.backends.http import Backend
from rightcall.backends.models import is_model_path, with_adapter
from rightcall.backends.profiles import PROFILES, Profile, without_native_tools
from rightcall.backends.request import Answer, Mode, Request
from rightcall.errors import BackendError, TransportError
from rightcall.extras import install_advice
from rightcall.redaction.key import Key
from rightcall.request_gate import given_key, make_gate, new_key
from rightcall.types import Event


class LocalServerError(BackendError):
    """The child process could not serve the model."""


class LocalServer:
    """Serve one model on loopback from a child process until `close`. A context manager. Needs the extra `local`.

    - `model`: a name from `rightcall model list`, or the path of a GGUF file.
    - `port`: 0 for any free port; `base_url` contains it.
    - `threads`: None: half the processors, at most four. llama.cpp's threads wait for each other: more threads than
      free processors make it many times slower.
    - `context`: tokens of prompt and answer together.
    - `wait`: seconds within which it must be ready.
    - `lora`: an adapter trained for the model, by its name or the path of its GGUF file.
    - `key`: the key that clients must send; by default, a new one is created at each start.
    - `no_key`: clients need no key.
    - `origins`: web pages that may use the server too.

    Raises `LocalServerError` or `ModelUnavailable` if the model cannot be served.
    """

    def __init__(
        self,
        model: str = "smollm2",
        *,
        port: int = 0,
        threads: int | None = None,
        context: int = 4096,
        wait: float = 300.0,
        lora: str = "",
        key: str = "",
        no_key: bool = False,
        origins: Iterable[str] = (),
    ) -> None:
        self.key = None if no_key else given_key(key) if key else new_key()
        allowed = make_gate("127.0.0.1", key=self.key, no_key=no_key, origins=origins).origins
        self.path, self.lora = with_adapter(model, lora)
        self.model = self.path.stem if is_model_path(model) else model
        self._log: IO[bytes] = tempfile.TemporaryFile(prefix="rightcall-llama-")  # noqa: SIM115 - closed by `close`
        folder = tempfile.mkdtemp(prefix="rightcall-llama-")  # its owner's alone; long paths name no socket
        self._process = _start_child(self._log)
        self._finish = weakref.finalize(self, _end_child, self._process, self._log, folder, os.getpid())
        order = {
            "model": str(self.path.resolve()),
            "lora": "" if self.lora is None else str(self.lora.resolve()),
            "name": self.model,
            "port": port,
            "threads": threads or max(1, min(4, _count_processors() // 2)),
            "context": context,
            "parent": os.getpid(),
            "folder": folder,
            "key": "" if self.key is None else self.key.reveal(),
            "origins": sorted(allowed),
            "sys_path": [os.path.abspath(entry) for entry in sys.path],
        }
        try:
            answer = self._start_model(order, wait)
        except BaseException:
            self.close()
            raise
        self.address = str(answer["address"])
        self.has_native_tools = bool(answer["native"])

    @property
    def base_url(self) -> str:
        """The base URL for clients."""
        return self.address + "/v1"

    @property
    def pid(self) -> int:
        """The id of the child process."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """True once the child process has ended."""
        return self._process.poll() is not None

    def wait(self) -> None:
        """Wait until the child has ended, which it does not do by itself."""
        self._process.wait()

    def close(self) -> None:
        """Stop the child. May be called twice."""
        self._finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def why(self) -> LocalServerError:
        """Return (not raise) the error that says why the child process has ended, after waiting for its end if it still
        runs. After `close` the error says that the server was closed."""
        if not self._finish.alive:
            return LocalServerError(f"the server of {self.model} was closed; start another one")
        return _exit_error(self.model, self._process.wait(), _main_error(self._log))

    def _start_model(self, order: dict[str, Any], wait: float) -> dict[str, Any]:
        """Send the order to the child and return its answer (address and `native`) once the model is ready. Raises
        `LocalServerError` if the child ends, reports an error, or takes longer than `wait` seconds."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self.why() from None
        line = self._read_line(time.monotonic() + wait)
        if line is None:
            raise LocalServerError(
                f"{self.model} was not ready after {wait:g} seconds; allow more time, or less context"
            )
        if not line:
            raise self.why()
        answer: dict[str, Any] = json.loads(line)
        if "address" not in answer:
            raise _start_error(self.model, answer, order["port"], _main_error(self._log))
        return answer

    def _read_line(self, until: float) -> bytes | None:
        """Read one line from the child's output; b"" if it ended without one, None if the time `until` (of the
        monotonic clock) passed."""
        assert self._process.stdout is not None
        said = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not said.endswith(b"\n"):
                if not selector.select(max(0.0, until - time.monotonic())):
                    return None
                piece = os.read(self._process.stdout.fileno(), 4096)
                if not piece:
                    return b""
                said += piece
        return said


class LocalBackend(Backend):
    """A `Backend` for a model that runs on this machine, together with its server. Closing it stops the server.

    - `model`, `threads`, `context`, `wait`, `lora`: as in `LocalServer`.
    - `mode`: how tools are offered, as in `Backend`. "auto" does not use a chat template that does not show tools.
    - `timeouts`: time limits; None for the defaults.
    """

    def __init__(
        self,
        model: str = "smollm2",
        *,
        mode: Mode = "auto",
        threads: int | None = None,
        context: int = 4096,
        wait: float = 300.0,
        lora: str = "",
        timeouts: Timeouts | None = None,
    ) -> None:
        self.server = LocalServer(model, threads=threads, context=context, wait=wait, lora=lora)
        try:
            super().__init__(
                self.server.base_url,
                model=self.server.model,
                mode=mode,
                profile=_local_profile(self.server),
                timeouts=timeouts,
                environ=_key_environment(self.server.key),  # never the keys and addresses of other servers
            )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop the server. May be called twice."""
        self.server.close()

    async def aclose(self) -> None:
        """Stop the server. May be called twice."""
        await super().aclose()
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _answer(self, request: Request, *, stream: bool) -> AsyncGenerator[Event | Answer]:
        """Yield the events of the answer (only if `stream`), then the `Answer`. If the child has died, raise its reason
        instead of the error of the refused connection."""
        try:
            async with aclosing(super()._answer(request, stream=stream)) as events:
                async for event in events:
                    yield event
        except TransportError as error:
            if self.server.has_ended:
                raise self.server.why() from error
            raise


def _key_environment(key: Key | None) -> dict[str, str]:
    """Return an environment that has the server's key alone, so that no other server's key or address is used."""
    return {} if key is None else {"OPENAI_API_KEY": key.reveal()}


def _local_profile(server: LocalServer) -> Profile:
    """Return the profile of llama.cpp, without native tools if the model's chat template does not show them."""
    known = PROFILES["llama.cpp"]
    return known if server.has_native_tools else without_native_tools(known)


def _start_child(log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the child process in its own session, so that Ctrl-C reaches only this process, and return it. Its errors
    go to `log`."""
    return subprocess.Popen(
        [sys.executable, "-I", "-X", "utf8", llama_child.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,  # Ctrl-C is for this process; the child is ended by it
    )


def _end_child(process: subprocess.Popen[bytes], log: IO[bytes], folder: str, owner: int) -> None:
    """Kill the child, wait for its end, and close its pipes and `log`. Its folder is deleted only in the process with
    the id `owner`, its parent: a fork of that cannot end the child, and keeps the folder."""
    process.kill()
    process.wait()
    if os.getpid() == owner:  # and no fork of it, for which there is nothing to kill either
        shutil.rmtree(folder, ignore_errors=True)
    for pipe in (process.stdin, process.stdout, log):
        if pipe is not None:
            pipe.close()


def _count_processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _main_error(log: IO[bytes]) -> str:
    """Return the first error line in the last 20,000 bytes of llama.cpp's log, without its timestamp. Lines about
    loading, invalid values or bounds are preferred; without an error line, the last line of the log is returned."""
    log.seek(max(0, log.seek(0, os.SEEK_END) - 20_000))
    lines = log.read().decode("utf-8", "replace").splitlines()
    complaints = [line.partition(" E ")[2] for line in lines if " E " in line] or lines[-1:]
    telling = [line for line in complaints if "error loading" in line or "invalid" in line or "bounds" in line]
    return " ".join((telling or complaints or [""])[0].split())[:300]


def _start_error(model: str, answer: dict[str, str], port: int, words: str) -> LocalServerError:
    """Return (not raise) the error for a child that could not start, from its `answer`: missing library, busy port, or
    a model that cannot be loaded, with `words` from the log."""
    if answer["error"] == "missing":
        return LocalServerError(
            install_advice("local") + ("" if "xllamacpp" in answer["reason"] else f" ({answer['reason']})")
        )
    if answer["error"] == "port":
        return LocalServerError(
            f"cannot listen on port {port}: {answer['reason']}; pass another --port, or 0 for a free one"
        )
    return LocalServerError(
        f"llama.cpp cannot load {model}: {words or answer['reason']}; "
        "the file may be damaged, or of a type that this xllamacpp does not support"
    )


_EXIT_CAUSES: dict[int, tuple[str, str]] = {
    signal.SIGILL: (
        "this processor lacks an instruction that the wheel of xllamacpp was built for (SIGILL)",
        "build it here with `pip install --no-binary xllamacpp xllamacpp`, or use a model server with --base-url",
    ),
    signal.SIGKILL: (
        "it was killed from outside, most likely for lack of memory",
        "use a smaller model or less context",
    ),
    signal.SIGTERM: ("it was ended from outside", "start it again"),
}


def _exit_error(model: str, code: int, words: str) -> LocalServerError:
    """Return (not raise) the error for a child that ended with exit code `code`, negative for a signal; `words` from
    its log explain a code without a known cause."""
    said = f"its process ended with {code}" + (f": {words}" if words else "")
    cause, cure = _EXIT_CAUSES.get(
        -code, (said, "start it again, or try another model file to see whether this one is the cause")
    )
    return LocalServerError(f"the server of {model} ended: {cause}; {cure}")
