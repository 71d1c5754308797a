"""Fuzz targets in addition to the laws of parsing: one for each function, with the mutated corpus as input.

Each target is a pure function of its random numbers: it returns a case, whose `check` raises on failure. The laws are:

    parse      the cut law and related laws; runnable calls pass `check`
    read       no exception, for any answer of a provider; runnable calls pass `check`
    stream     a streamed answer gives the same reply as `read` of the whole answer
    repair     a runnable result passes `check`, and is unchanged when it is repaired again
    check      `check` and `dispatch` agree on which calls are runnable
    grammar    a text that the grammar accepts is parsed as calls that pass `check`
    dispatch   only runnable calls run, each once, with the arguments that were sent
"""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

from mutate import mutated_text

from rightcall import Call, Reply, Stream, Tool, Toolset, check, dispatch_sync, grammar, parse, read, repair
from rightcall.formats import FORMATS
from rightcall.parsing.options import Policy
from rightcall.testing.laws import How
from support import samples
from support.hostile import BrokenLaw, check_laws

Json = dict[str, Any]


class Case(NamedTuple):
    """One case of a target: the text, which may be reduced, and the check that fails or not."""

    text: str
    check: Callable[[str], None]  # raises `BrokenLaw`, or another exception
    repro: Callable[[str], str]


def choose_sample(rng: Random) -> samples.Sample:
    return rng.choice(samples.samples())


def arguments_of(sample: samples.Sample) -> list[tuple[str, Json]]:
    return list(sample.expect.calls) or [("get_weather", {"city": "Oslo"})]


def require_sound(reply: Reply, tools: Toolset) -> None:
    """Raise `BrokenLaw` if a runnable call does not pass `check`."""
    for call in reply.calls:
        wrong = [problem.code for problem in check(call, tools) if problem.blocking]
        if wrong:
            raise BrokenLaw("a runnable call passes the check", f"{call.name}({call.json}): {wrong}")


# -- parse -------------------------------------------------------------------------------------------------------------


def make_parse_case(rng: Random) -> Case:
    sample, seed = choose_sample(rng), rng.randrange(10**9)
    tools = samples.toolset(sample.tools)
    format = rng.choice((sample.format, sample.format, "auto", rng.choice(list(FORMATS))))
    policies: tuple[Policy, ...] = ("safe", "safe", "lenient", "off")
    policy = rng.choice(policies)

    def check_text(text: str) -> None:
        dice = Random(seed)
        cuts = [list(range(1, len(text))), sorted({dice.randint(0, len(text)) for _ in range(4)})]
        check_laws(text, format, cuts, tools=tools, how=How(repair=policy))
        require_sound(parse(text, format=format, tools=tools, repair=policy), tools)

    def repro(text: str) -> str:
        return json.dumps({"text": text, "format": format, "tools": sample.tools, "repair": policy, "seed": seed})

    return Case(mutated_text(sample.text, sample.format, rng), check_text, repro)


# -- read and stream ---------------------------------------------------------------------------------------------------


def answer(rng: Random, sample: samples.Sample, text: str) -> Json:
    """Return a chat answer with the sample's text, and possibly native calls, one of them with mutated arguments."""
    message: Json = {"role": "assistant", "content": rng.choice((text, "", "Hello."))}
    if rng.random() < 0.3:
        message["reasoning_content"] = rng.choice((text, "Let me see."))
    if rng.random() < 0.7:
        message["tool_calls"] = [_call(i, *call, rng) for i, call in enumerate(arguments_of(sample))]
        mutated_function = rng.choice(message["tool_calls"])["function"]
        mutated_function["arguments"] = mutated_text(mutated_function["arguments"], sample.format, rng)
    finish = rng.choice(("stop", "stop", "tool_calls", "length", None))
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _call(index: int, name: str, arguments: Json, rng: Random) -> Json:
    function = {"name": name if rng.random() < 0.95 else "", "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"index": index, "id": f"call_{index}", "type": "function", "function": function}


def chunks_of(whole: Json, dice: Random) -> Iterator[Json]:
    """Yield the same answer in chunks: reasoning, text, then each call, with the name in its first chunk."""
    [choice] = whole["choices"]
    message = choice["message"]
    for key in ("reasoning_content", "content"):
        for piece in _pieces(message.get(key) or "", dice):
            yield _delta({key: piece})
    for call in message.get("tool_calls", ()):
        function = call["function"]
        first, *rest = list(_pieces(function["arguments"], dice)) or [""]
        yield _delta({"tool_calls": [{**call, "function": {**function, "arguments": first}}]})
        for piece in rest:
            yield _delta({"tool_calls": [{"index": call["index"], "function": {"arguments": piece}}]})
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}


def _delta(fields: Json) -> Json:
    return {"choices": [{"index": 0, "delta": fields}]}


def _pieces(text: str, dice: Random) -> Iterator[str]:
    while text:
        size = dice.choice((1, 2, 5, 40, 1000))
        yield text[:size]
        text = text[size:]


def make_stream_case(rng: Random) -> Case:
    sample, seed = choose_sample(rng), rng.randrange(10**9)
    tools = samples.toolset(sample.tools)
    format = rng.choice((sample.format, "auto"))
    live, as_bytes = rng.random() < 0.3, rng.random() < 0.3

    def check_text(text: str) -> None:
        dice = Random(seed)
        whole = answer(dice, sample, text)
        stream = Stream(tools=tools, format=format)
        preview = Stream(tools=tools, format=format, live=live)
        for chunk in chunks_of(whole, dice):
            stream.feed(f"data: {json.dumps(chunk)}\n\n".encode() if as_bytes else chunk)
            preview.feed(chunk)
        stream.close()
        preview.close()
        reply = read(whole, tools=tools, format=format)
        if _plain(stream.reply) != _plain(reply):
            raise BrokenLaw("streamed is whole", f"{_plain(stream.reply)}\n  whole: {_plain(reply)}")
        require_sound(reply, tools)
        require_sound(preview.reply, tools)

    def repro(text: str) -> str:
        return json.dumps({"answer": answer(Random(seed), sample, text), "format": format, "tools": sample.tools})

    return Case(mutated_text(sample.text, sample.format, rng), check_text, repro)


def _plain(reply: Reply) -> Any:
    calls = [(call.name, call.arguments, call.ok, [each.code for each in call.problems]) for call in reply.attempts]
    return calls, reply.content, reply.reasoning, sorted(each.code for each in reply.problems)


def make_read_case(rng: Random) -> Case:
    sample, seed = choose_sample(rng), rng.randrange(10**9)
    tools = samples.toolset(sample.tools)

    def check_text(text: str) -> None:
        dice = Random(seed)
        broken = _replace_values(answer(dice, sample, text), dice)
        require_sound(read(broken, tools=tools), tools)
        stream = Stream(tools=tools)
        stream.feed(broken)
        stream.close()
        require_sound(stream.reply, tools)

    def repro(text: str) -> str:
        dice = Random(seed)
        return json.dumps(_replace_values(answer(dice, sample, text), dice))

    return Case(mutated_text(sample.text, sample.format, rng), check_text, repro)


_ODD: tuple[Any, ...] = (
    None,
    0,
    -1,
    True,
    "",
    "a",
    [],
    {},
    [None],
    {"a": 1},
    10**30,
    1.5,
    [[]],
    "{}",
    {"function": {}},
)


def _replace_values(value: Json, dice: Random) -> Json:
    """Return a copy with a few values replaced or removed."""
    made = copy.deepcopy(value)
    for _ in range(dice.randint(0, 4)):
        places = list(_places(made))
        holder, key = dice.choice(places)
        if dice.random() < 0.3:
            del holder[key]
        else:
            holder[key] = copy.deepcopy(dice.choice(_ODD))
        if not list(_places(made)):
            break
    return made


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    for key in keys:
        yield value, key
        yield from _places(value[key])


# -- repair and check --------------------------------------------------------------------------------------------------


def make_repair_case(rng: Random) -> Case:
    sample = choose_sample(rng)
    tools = samples.toolset(sample.tools)
    name, arguments = rng.choice(arguments_of(sample))
    policy = rng.choice(("safe", "lenient", "off"))

    def check_text(text: str) -> None:
        call = Call(name, {}, text)
        repaired = repair(call, tools, policy=policy)
        if repaired.ok and repaired is not call:  # an unchanged call is not checked
            require_sound(Reply((repaired,)), tools)
            repaired_again = repair(repaired, tools, policy=policy)
            if repaired_again.arguments != repaired.arguments or not repaired_again.ok:
                raise BrokenLaw("a repaired call is not changed again", f"{repaired.json} became {repaired_again.json}")

    text = mutated_text(json.dumps(arguments, ensure_ascii=False), sample.format, rng)
    return Case(text, check_text, lambda text: json.dumps({"call": name, "json": text, "tools": sample.tools}))


def _recording_tools(tools: Toolset, log: list[tuple[str, Json]]) -> Toolset:
    """Return the same tools with functions that record their arguments."""

    def with_run(tool: Tool) -> Tool:
        def run(**arguments: Any) -> str:
            log.append((tool.name, arguments))
            return "done"

        return Tool(name=tool.name, parameters=tool.parameters, run=run)

    return Toolset([with_run(tool) for tool in tools])


def make_check_case(rng: Random) -> Case:
    sample = choose_sample(rng)
    tools = samples.toolset(sample.tools)
    name, arguments = rng.choice(arguments_of(sample))

    def check_text(text: str) -> None:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return
        if not isinstance(value, dict):
            return
        log: list[tuple[str, Json]] = []
        call = Call(name, value)
        refused = any(problem.blocking for problem in check(call, tools))
        dispatch_sync([call], _recording_tools(tools, log))
        if refused is bool(log):
            raise BrokenLaw("the calls that run are those that pass the check", f"refused: {refused}, ran: {log}")

    text = mutated_text(json.dumps(arguments, ensure_ascii=False), sample.format, rng)
    return Case(text, check_text, lambda text: json.dumps({"call": name, "json": text, "tools": sample.tools}))


def make_dispatch_case(rng: Random) -> Case:
    sample = choose_sample(rng)
    tools = samples.toolset(sample.tools)

    def check_text(text: str) -> None:
        log: list[tuple[str, Json]] = []
        runs = _recording_tools(tools, log)
        reply = parse(text, format=sample.format, tools=runs)
        dispatch_sync(reply, runs)
        runnable = [(call.name, call.arguments) for call in reply.calls]
        if sorted(map(repr, log)) != sorted(map(repr, runnable)):
            raise BrokenLaw("only runnable calls run", f"ran {log}, runnable: {runnable}")

    return Case(
        mutated_text(sample.text, sample.format, rng),
        check_text,
        lambda text: json.dumps({"text": text, "format": sample.format, "tools": sample.tools}),
    )


# -- grammar -----------------------------------------------------------------------------------------------------------


@functools.lru_cache(64)
def _matcher(format: str, tools: str) -> Any:
    from support import judge as outside

    tool_grammar = grammar(samples.toolset(tools), format=format, choice="required", text=True)
    words, tokenizer = outside.vocabulary(format)
    return tool_grammar, words, outside.matcher(tool_grammar.lark(tokens=False), tokenizer)


def make_grammar_case(rng: Random) -> Case:
    sample, seed = choose_sample(rng), rng.randrange(10**9)
    tools = samples.toolset(sample.tools)

    def check_text(text: str) -> None:
        from support import judge as outside

        tool_grammar, words, matcher = _matcher(sample.format, sample.tools)
        tokens = outside.draw_tokens(matcher.deep_copy(), words.eos_token_id, Random(seed), max_tokens=200)
        if tokens is None:
            return
        accepted = words.decode(tokens)
        reply = parse(accepted, tools=tools, format=sample.format, repair="off")
        wrong = [problem.code for problem in reply.problems if problem.blocking]
        if wrong or not reply.attempts:
            raise BrokenLaw("a text that a grammar accepts is parsed as calls", f"{accepted!r}: {wrong}")
        if not any(limit.keyword for limit in tool_grammar.relaxations):
            require_sound(reply, tools)

    return Case("", check_text, lambda _: json.dumps({"format": sample.format, "tools": sample.tools, "seed": seed}))


TARGETS: dict[str, Callable[[Random], Case]] = {
    "parse": make_parse_case,
    "read": make_read_case,
    "stream": make_stream_case,
    "repair": make_repair_case,
    "check": make_check_case,
    "grammar": make_grammar_case,
    "dispatch": make_dispatch_case,
}
