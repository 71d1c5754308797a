"""What is fuzzed beside the laws of reading: a target for each function, fed with the corpus, spoiled.

Each target is a pure function of its dice: it makes a case, whose `judge` says what is wrong. The oracles are laws:

    parse      the cut law and its like; whatever may run passes `check`
    read       nothing raises, whatever a provider's answer holds; whatever may run passes `check`
    stream     a streamed answer is the answer that `read` makes of its chunks put together
    repair     what comes back and may run passes `check`, and is left alone when it is repaired again
    check      `check` and `dispatch` agree on which calls may run
    grammar    whatever the grammar accepts is read as calls that pass `check`
    dispatch   only calls that may run are run, each once, with the arguments it was sent with
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
    """One try of a target: the text that may be made smaller, and what says whether it fails."""

    text: str
    judge: Callable[[str], None]  # raises `BrokenLaw`, or anything else
    repro: Callable[[str], str]


def taken(rng: Random) -> samples.Sample:
    return rng.choice(samples.samples())


def arguments_of(sample: samples.Sample) -> list[tuple[str, Json]]:
    return list(sample.expect.calls) or [("get_weather", {"city": "Oslo"})]


def sound(reply: Reply, tools: Toolset) -> None:
    """Whatever may run passes the check."""
    for call in reply.calls:
        wrong = [problem.code for problem in check(call, tools) if problem.blocking]
        if wrong:
            raise BrokenLaw("what may run passes the check", f"{call.name}({call.json}): {wrong}")


# -- parse -------------------------------------------------------------------------------------------------------------


def parsing(rng: Random) -> Case:
    sample, seed = taken(rng), rng.randrange(10**9)
    tools = samples.toolset(sample.tools)
    format = rng.choice((sample.format, sample.format, "auto", rng.choice(list(FORMATS))))
    policies: tuple[Policy, ...] = ("safe", "safe", "lenient", "off")
    policy = rng.choice(policies)

    def judge(text: str) -> None:
        dice = Random(seed)
        cuts = [list(range(1, len(text))), sorted({dice.randint(0, len(text)) for _ in range(4)})]
        check_laws(text, format, cuts, tools=tools, how=How(repair=policy))
        sound(parse(text, format=format, tools=tools, repair=policy), tools)

    def repro(text: str) -> str:
        return json.dumps({"text": text, "format": format, "tools": sample.tools, "repair": policy, "seed": seed})

    return Case(mutated_text(sample.text, sample.format, rng), judge, repro)


# -- read and stream ---------------------------------------------------------------------------------------------------


def answer(rng: Random, sample: samples.Sample, text: str) -> Json:
    """A chat answer with the sample's text, and maybe its calls as the provider's own; one of those has the text."""
    message: Json = {"role": "assistant", "content": rng.choice((text, "", "Hello."))}
    if rng.random() < 0.3:
        message["reasoning_content"] = rng.choice((text, "Let me see."))
    if rng.random() < 0.7:
        message["tool_calls"] = [_call(i, *call, rng) for i, call in enumerate(arguments_of(sample))]
        spoiled = rng.choice(message["tool_calls"])["function"]
        spoiled["arguments"] = mutated_text(spoiled["arguments"], sample.format, rng)
    finish = rng.choice(("stop", "stop", "tool_calls", "length", None))
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _call(index: int, name: str, arguments: Json, rng: Random) -> Json:
    function = {"name": name if rng.random() < 0.95 else "", "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"index": index, "id": f"call_{index}", "type": "function", "function": function}


def chunks_of(whole: Json, dice: Random) -> Iterator[Json]:
    """The same answer, in pieces: thoughts, text, then each call, named in its first piece."""
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


def streaming(rng: Random) -> Case:
    sample, seed = taken(rng), rng.randrange(10**9)
    tools = samples.toolset(sample.tools)
    format = rng.choice((sample.format, "auto"))
    live, as_bytes = rng.random() < 0.3, rng.random() < 0.3

    def judge(text: str) -> None:
        dice = Random(seed)
        whole = answer(dice, sample, text)
        stream = Stream(tools=tools, format=format)
        preview = Stream(tools=tools, format=format, live=live)
        for chunk in chunks_of(whole, dice):
            stream.feed(f"data: {json.dumps(chunk)}\n\n".encode() if as_bytes else chunk)
            preview.feed(chunk)
        stream.close()
        preview.close()
        found = read(whole, tools=tools, format=format)
        if _plain(stream.reply) != _plain(found):
            raise BrokenLaw("streamed is whole", f"{_plain(stream.reply)}\n  whole: {_plain(found)}")
        sound(found, tools)
        sound(preview.reply, tools)

    def repro(text: str) -> str:
        return json.dumps({"answer": answer(Random(seed), sample, text), "format": format, "tools": sample.tools})

    return Case(mutated_text(sample.text, sample.format, rng), judge, repro)


def _plain(reply: Reply) -> Any:
    calls = [(call.name, call.arguments, call.ok, [each.code for each in call.problems]) for call in reply.attempts]
    return calls, reply.content, reply.reasoning, sorted(each.code for each in reply.problems)


def reading(rng: Random) -> Case:
    sample, seed = taken(rng), rng.randrange(10**9)
    tools = samples.toolset(sample.tools)

    def judge(text: str) -> None:
        dice = Random(seed)
        broken = _shaken(answer(dice, sample, text), dice)
        sound(read(broken, tools=tools), tools)
        stream = Stream(tools=tools)
        stream.feed(broken)
        stream.close()
        sound(stream.reply, tools)

    def repro(text: str) -> str:
        dice = Random(seed)
        return json.dumps(_shaken(answer(dice, sample, text), dice))

    return Case(mutated_text(sample.text, sample.format, rng), judge, repro)


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


def _shaken(value: Json, dice: Random) -> Json:
    """The same with a few values put in the place of others, or taken away."""
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


def repairing(rng: Random) -> Case:
    sample = taken(rng)
    tools = samples.toolset(sample.tools)
    name, arguments = rng.choice(arguments_of(sample))
    policy = rng.choice(("safe", "lenient", "off"))

    def judge(text: str) -> None:
        call = Call(name, {}, text)
        made = repair(call, tools, policy=policy)
        if made.ok and made is not call:  # what is given back as it came is not judged
            sound(Reply((made,)), tools)
            again = repair(made, tools, policy=policy)
            if again.arguments != made.arguments or not again.ok:
                raise BrokenLaw("what is repaired is left alone", f"{made.json} became {again.json}")

    text = mutated_text(json.dumps(arguments, ensure_ascii=False), sample.format, rng)
    return Case(text, judge, lambda text: json.dumps({"call": name, "json": text, "tools": sample.tools}))


def _runs(tools: Toolset, log: list[tuple[str, Json]]) -> Toolset:
    """The same tools, which write down what they are called with."""

    def made(tool: Tool) -> Tool:
        def run(**arguments: Any) -> str:
            log.append((tool.name, arguments))
            return "done"

        return Tool(name=tool.name, parameters=tool.parameters, run=run)

    return Toolset([made(tool) for tool in tools])


def checking(rng: Random) -> Case:
    sample = taken(rng)
    tools = samples.toolset(sample.tools)
    name, arguments = rng.choice(arguments_of(sample))

    def judge(text: str) -> None:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return
        if not isinstance(value, dict):
            return
        log: list[tuple[str, Json]] = []
        call = Call(name, value)
        refused = any(problem.blocking for problem in check(call, tools))
        dispatch_sync([call], _runs(tools, log))
        if refused is bool(log):
            raise BrokenLaw("what runs is what passes the check", f"refused: {refused}, ran: {log}")

    text = mutated_text(json.dumps(arguments, ensure_ascii=False), sample.format, rng)
    return Case(text, judge, lambda text: json.dumps({"call": name, "json": text, "tools": sample.tools}))


def dispatching(rng: Random) -> Case:
    sample = taken(rng)
    tools = samples.toolset(sample.tools)

    def judge(text: str) -> None:
        log: list[tuple[str, Json]] = []
        runs = _runs(tools, log)
        reply = parse(text, format=sample.format, tools=runs)
        dispatch_sync(reply, runs)
        wanted = [(call.name, call.arguments) for call in reply.calls]
        if sorted(map(repr, log)) != sorted(map(repr, wanted)):
            raise BrokenLaw("only what may run is run", f"ran {log}, might run {wanted}")

    return Case(
        mutated_text(sample.text, sample.format, rng),
        judge,
        lambda text: json.dumps({"text": text, "format": sample.format, "tools": sample.tools}),
    )


# -- grammar -----------------------------------------------------------------------------------------------------------


@functools.lru_cache(64)
def _matcher(format: str, tools: str) -> Any:
    from support import judge as outside

    made = grammar(samples.toolset(tools), format=format, choice="required", text=True)
    words, tokenizer = outside.vocabulary(format)
    return made, words, outside.matcher(made.lark(tokens=False), tokenizer)


def constraining(rng: Random) -> Case:
    sample, seed = taken(rng), rng.randrange(10**9)
    tools = samples.toolset(sample.tools)

    def judge(text: str) -> None:
        from support import judge as outside

        made, words, matcher = _matcher(sample.format, sample.tools)
        tokens = outside.draw_tokens(matcher.deep_copy(), words.eos_token_id, Random(seed), max_tokens=200)
        if tokens is None:
            return
        accepted = words.decode(tokens)
        reply = parse(accepted, tools=tools, format=sample.format, repair="off")
        wrong = [problem.code for problem in reply.problems if problem.blocking]
        if wrong or not reply.attempts:
            raise BrokenLaw("what a grammar accepts is read", f"{accepted!r}: {wrong}")
        if not any(limit.keyword for limit in made.relaxations):
            sound(reply, tools)

    return Case("", judge, lambda _: json.dumps({"format": sample.format, "tools": sample.tools, "seed": seed}))


TARGETS: dict[str, Callable[[Random], Case]] = {
    "parse": parsing,
    "read": reading,
    "stream": streaming,
    "repair": repairing,
    "check": checking,
    "grammar": constraining,
    "dispatch": dispatching,
}
