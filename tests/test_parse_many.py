"""`parse_many`: the replies of `parse`, lazily and in order, for any texts and number of processes."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from rightcall import Call, Reply, Tool, Toolset, parse, parse_many
from rightcall.errors import CallerError, UnknownFormat
from support.replies import hermes
from support.samples import files, read_samples

TEXTS = [sample.text for file in files() for sample in read_samples(file)]


def look(city: str, days: int = 1) -> str:
    """Looks at the sky."""
    return city


def without_ids(reply: Reply) -> Reply:
    """Remove the ids, which every parse generates anew."""
    parts = [msgspec.structs.replace(part, id="") if isinstance(part, Call) else part for part in reply.parts]
    return msgspec.structs.replace(reply, parts=tuple(parts))


def assert_same_as_parse(texts: list[Any], **options: Any) -> None:
    expected = [without_ids(parse(text, **options)) for text in texts]
    assert [without_ids(reply) for reply in parse_many(iter(texts), jobs=2, **options)] == expected


def test_the_corpus_gives_the_same_replies_as_parse() -> None:
    assert len(TEXTS) > 1_000
    assert_same_as_parse(TEXTS[::7])


def test_options_tools_and_unusual_texts_reach_the_workers() -> None:
    odd = [hermes('{"name": "look", "arguments": {"city": "\\ud800", "days": 12345678901234567890123}}'), "\ud800", ""]
    pairs = [("<tool_call>", True), ('{"name": "look", "arguments": {"city": 1e400}}', False), ("</tool_call>", True)]
    options = {"tools": [look], "format": "hermes", "repair": {"look": "lenient", "*": "off"}, "spans": True}
    assert_same_as_parse([*odd, pairs] * 10, **options, finish="length")
    assert_same_as_parse(
        [*odd, pairs] * 10, **{**options, "tools": Toolset(look, Tool(name="other")).scoped(["other"])}
    )


def test_texts_are_consumed_lazily() -> None:
    consumed = 0

    def texts() -> Iterator[str]:
        nonlocal consumed
        for consumed in itertools.count(1):
            yield f"text {consumed}"

    replies = parse_many(texts(), format="hermes", jobs=2)
    assert [next(replies).content for _ in range(20)] == [f"text {number}" for number in range(1, 21)]
    assert consumed < 4_000
    replies.close()  # type: ignore[attr-defined]


def child_pids() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return list(map(int, file.read().split()))


@pytest.mark.skipif(not os.path.exists(f"/proc/self/task/{os.getpid()}/children"), reason="it finds workers in /proc")
def test_a_killed_worker_loses_no_reply_and_leaves_no_process() -> None:
    before = set(child_pids())
    replies = parse_many((f"text {number}" for number in range(5_000)), format="hermes", jobs=2)
    seen = [next(replies).content]
    for child in set(child_pids()) - before:
        os.kill(child, signal.SIGKILL)
    seen += [reply.content for reply in replies]
    assert seen == [f"text {number}" for number in range(5_000)]
    assert set(child_pids()) <= before


@pytest.mark.parametrize("jobs", [1, 2])
def test_parse_many_raises_the_same_errors_as_parse(jobs: int) -> None:
    with pytest.raises(UnknownFormat):
        parse_many([], format="no such", jobs=jobs)
    with pytest.raises(CallerError, match="is not one of"):
        parse_many([], repair="maybe", jobs=jobs)  # type: ignore[arg-type]
    with pytest.raises(CallerError, match="an iterable of texts"):
        parse_many("one text", jobs=jobs)
    with pytest.raises(CallerError, match="not NoneType; an answer without text"):
        list(parse_many(["a"] * 100 + [None] * 100, format="hermes", jobs=jobs))  # type: ignore[list-item]
    with pytest.raises(CallerError, match="a model's text is a str"):
        list(parse_many(["a"] * 100 + [lambda: 1] * 100, format="hermes", jobs=jobs))  # type: ignore[list-item]
    with pytest.raises(CallerError, match="give 1 or more"):
        parse_many([], jobs=0)


def test_a_script_without_a_main_guard_runs_once(tmp_path: Any) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import rightcall\n"
        "print('once')\n"
        "def f(x: int): ...\n"
        "many = rightcall.parse_many(['ab'] * 100, tools=[f], format='hermes', jobs=2)\n"
        "print(sum(len(reply.content) for reply in many))\n"
    )

    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("once\n200\n", "")


def test_each_reply_is_complete() -> None:
    (reply,) = parse_many([hermes(json.dumps({"name": "look", "arguments": {"city": "Oslo"}}))], tools=[look])
    assert reply.calls[0].arguments == {"city": "Oslo"}
