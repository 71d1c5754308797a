"""A local model in a child process: it answers, reports why it cannot start, and never outlives its parent.

The tests use the real xllamacpp if it and the model are installed, otherwise a stand-in package of the same name.
"""

import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from rightcall.backends.local import LocalServer, LocalServerError
from rightcall.backends.models import MODELS, ModelUnavailable, is_cached
from rightcall.errors import CallerError
from support.command import accept_ctrl_c, failed, run
from support.stand_in_llama import DIES, MISSING, PACKAGE, model_file, write_package

MODEL_IS_HERE = importlib.util.find_spec("xllamacpp") is not None and is_cached(MODELS["smollm2"])


@pytest.fixture
def llama(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = write_package(tmp_path / "packages")
    monkeypatch.syspath_prepend(str(folder))
    return folder


def request_json(address: str, path: str, body: Any = None, *, key: str = "") -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    request = urllib.request.Request(address + path, data, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def is_listening(address: str) -> bool:
    try:
        socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=5).close()
    except OSError:
        return False
    return True


def stops_listening(address: str) -> bool:
    """Return whether the address stops listening within half a minute; usually it is immediate."""
    until = time.monotonic() + 30
    while is_listening(address) and time.monotonic() < until:
        time.sleep(0.05)
    return not is_listening(address)


# -- lifetime of the server --------------------------------------------------------------------------------------------


def test_a_local_server_answers_until_it_is_closed(llama: Path, tmp_path: Path) -> None:
    with LocalServer(model_file(tmp_path)) as server:
        assert server.key is not None
        key = server.key.reveal()
        assert request_json(server.base_url, "/models", key=key)["data"] == [{"id": "own"}]
        body = {"messages": [{"role": "user", "content": "Hi"}]}
        answer = request_json(server.base_url, "/chat/completions", body, key=key)
        assert answer["choices"][0]["message"]["content"] == "Hi"
    assert not is_listening(server.address)
    server.close()


def test_an_adapter_is_loaded_next_to_the_model(llama: Path, tmp_path: Path) -> None:
    (tmp_path / "beside.gguf").write_text("GGUF adapter")
    with LocalServer(model_file(tmp_path), lora=str(tmp_path / "beside.gguf"), key="open-sesame") as server:
        found = request_json(server.base_url, "/models", key="open-sesame")["data"]
    assert [each["id"] for each in found] == ["own", f"{tmp_path / 'beside.gguf'} x 1.0"]
    with pytest.raises(CallerError, match=r"cannot read the model .*gone\.gguf"):
        LocalServer(model_file(tmp_path), lora="gone.gguf")


def test_a_garbage_collected_server_is_stopped(llama: Path, tmp_path: Path) -> None:
    server = LocalServer(model_file(tmp_path))
    address = server.address
    del server
    assert stops_listening(address)


PARENT = """
import sys, time
from rightcall.backends.local import LocalServer
server = LocalServer(sys.argv[1])
print(server.address, flush=True)
{then}
"""
PARENT_ENDS = {
    "falls off its end": ("", None),
    "raises": ("raise ValueError", None),
    "is killed": ("time.sleep(60)", signal.SIGKILL),
    "is terminated": ("time.sleep(60)", signal.SIGTERM),
    "aborts": ("import os; os.abort()", None),
    "is killed and a fork of it lives on": (
        "import os\nif os.fork() == 0:\n    os.close(1); os.close(2); time.sleep(20); os._exit(0)\ntime.sleep(60)",
        signal.SIGKILL,
    ),
}


@pytest.mark.parametrize("then, number", PARENT_ENDS.values(), ids=PARENT_ENDS)
def test_the_server_is_stopped_when_the_parent_ends(then: str, number: int | None, llama: Path, tmp_path: Path) -> None:
    code = PARENT.format(then=then)
    path = os.pathsep.join([str(llama), *filter(None, sys.path)])
    parent = subprocess.Popen(
        [sys.executable, "-c", code, model_file(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
        text=True,
    )
    assert parent.stdout is not None
    with parent.stdout:
        address = parent.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        if number is not None:
            os.kill(parent.pid, number)
        parent.wait(60)
        assert stops_listening(address)


def test_a_fork_that_exits_does_not_stop_the_server(llama: Path, tmp_path: Path) -> None:
    then = "import os\nif os.fork() == 0:\n    sys.exit(0)\nos.wait()\nimport urllib.request\n"
    then += "print(urllib.request.urlopen(server.address + '/health', timeout=60).status, flush=True)"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PARENT.format(then=then), model_file(tmp_path)],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(llama), *filter(None, sys.path)]), "no_proxy": "*"},
        text=True,
        timeout=60,
    )
    assert done.stdout.splitlines()[-1] == "200", done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the child notices once the model is loaded")
def test_a_child_that_blocks_the_interpreter_while_loading_is_stopped(llama: Path, tmp_path: Path) -> None:
    write_package(llama, PACKAGE.replace("time.sleep(60)", "9**9**9"))
    code = PARENT.format(then="")
    path = os.pathsep.join([str(llama), *filter(None, sys.path)])
    with (tmp_path / "log").open("w+") as log:
        parent = subprocess.Popen(
            [sys.executable, "-c", code, model_file(tmp_path, "GGUF slow")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": path},
        )
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    until = time.monotonic() + 30
    while not (pids := children.read_text().split()) and time.monotonic() < until:
        time.sleep(0.05)
    (child,) = pids
    time.sleep(1)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait(60)
    while is_running(child) and time.monotonic() < until + 30:
        time.sleep(0.05)
    assert not is_running(child)


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# -- startup errors ----------------------------------------------------------------------------------------------------

STARTUP_ERRORS = {
    "a processor that is too old": (DIES.format("SIGILL"), "GGUF", r"processor lacks.*SIGILL.*--no-binary xllamacpp"),
    "no memory": (DIES.format("SIGKILL"), "GGUF", r"killed from outside, most likely for lack of memory"),
    "another death": ("import os; os._exit(3)", "GGUF", r"its process ended with 3"),
    "not installed": (MISSING, "GGUF", r"not installed: pip install 'rightcall\[local\]'"),
    "a library that is missing": ("raise ImportError('libgomp.so.1: no such file')", "GGUF", r"libgomp\.so\.1"),
    "a damaged file": (PACKAGE, "GGUF damaged", r"cannot load own: .*a tensor is missing; the file may be damaged"),
    "no GGUF": (PACKAGE, "PK", r"is not a GGUF file"),
}


@pytest.mark.parametrize("package, text, message", STARTUP_ERRORS.values(), ids=STARTUP_ERRORS)
def test_a_model_that_cannot_be_served_is_reported_with_the_reason(
    package: str, text: str, message: str, llama: Path, tmp_path: Path
) -> None:
    write_package(llama, package)
    line = failed(run("model", "serve", model_file(tmp_path, text), "--port", "0"), 2 if text == "PK" else 1)
    assert re.search(message, line), line


def test_a_port_in_use_is_an_error(llama: Path, tmp_path: Path) -> None:
    with socket.socket() as busy_socket:
        busy_socket.bind(("127.0.0.1", 0))
        busy_socket.listen()
        port = busy_socket.getsockname()[1]
        with pytest.raises(LocalServerError, match=f"cannot listen on port {port}: .* 0 for a free one"):
            LocalServer(model_file(tmp_path), port=port)


def test_a_model_that_is_not_ready_in_time_is_an_error(llama: Path, tmp_path: Path) -> None:
    with pytest.raises(LocalServerError, match=r"not ready after 0\.2 seconds"):
        LocalServer(model_file(tmp_path, "GGUF slow"), wait=0.2)


def test_a_model_that_was_not_pulled_cannot_be_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIGHTCALL_CACHE", str(tmp_path))
    with pytest.raises(ModelUnavailable, match="rightcall model pull smollm2"):
        LocalServer()


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_answers_until_it_is_interrupted(number: int, llama: Path, tmp_path: Path) -> None:
    path = os.pathsep.join([str(llama), *filter(None, sys.path)])
    serving = subprocess.Popen(
        [sys.executable, "-m", "rightcall", "model", "serve", model_file(tmp_path), "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        text=True,
        preexec_fn=accept_ctrl_c,
    )
    assert serving.stdout is not None
    server_info = json.loads("".join(iter(serving.stdout.readline, "}\n")) + "}")
    address = server_info["url"].removesuffix("/v1")
    assert server_info["model"] == "own" and request_json(address, "/v1/models", key=server_info["key"])
    os.kill(serving.pid, number)
    rest, errors = serving.communicate(timeout=60)
    assert (serving.returncode, rest) == (0, "") and errors.endswith("rightcall: stopped\n")
    assert "the chat template of the model does not support tools" in errors and server_info["key"] not in errors
    assert stops_listening(address)


# -- the real model ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not MODEL_IS_HERE, reason="needs the extra `local` and `rightcall model pull smollm2`")
def test_the_real_model_gives_the_same_answer_twice() -> None:
    body = {
        "messages": [{"role": "user", "content": "Name a colour."}],
        "max_tokens": 12,
        "temperature": 0,
        "seed": 1,
    }
    with LocalServer(threads=1, key="open-sesame") as server:

        def ask(path: str, body: Any = None) -> Any:
            return request_json(server.base_url, path, body, key="open-sesame")

        assert ask("/models")["data"][0]["id"] == "smollm2"
        first, second = [ask("/chat/completions", body)["choices"] for _ in range(2)]
        grammar = ask("/chat/completions", {**body, "grammar": 'root ::= "red" | "blue"'})["choices"]
    assert first == second and first[0]["message"]["content"]
    assert grammar[0]["message"]["content"] in ("red", "blue")


@pytest.mark.skipif(not MODEL_IS_HERE, reason="needs the extra `local` and `rightcall model pull smollm2`")
def test_the_real_model_can_run_an_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is far too small for the task; its actions are shown, recorded and counted."""
    monkeypatch.setenv("RIGHTCALL_RUNS", str(tmp_path / "runs"))
    limits = ["--max-turns", "1", "--max-tokens", "24", "--temperature", "0", "--guard", "none"]
    done = run("run", "Say hello.", "--local", "smollm2", "--cwd", str(tmp_path), "--plan", "--json", *limits)
    final_event = json.loads(done.stdout.splitlines()[-1])
    assert done.exit_code == (final_event["status"] != "done"), done.output
    assert final_event["event"] == "over" and final_event["turns"] and final_event["completion"]
