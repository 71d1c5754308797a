"""Logged replies with every kind of result that a report counts, and their tally."""

from __future__ import annotations

from collections.abc import Iterable

from rightcall import Tool, Toolset, parse, read
from rightcall.evaluation.reports.findings import LoggedReply
from rightcall.evaluation.reports.reply_tally import ReplyTally

WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
TOOLS = Toolset([Tool(name="get_weather", parameters=WEATHER), Tool(name="ping")])


def hermes(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


GOOD = hermes('{"name": "get_weather", "arguments": {"city": "Oslo"}}')
REPAIRED = hermes('{"name": "get_weather", "arguments": {"city": "Oslo", "days": "3"}}')
REFUSED = "Let me see.\n" + hermes('{"name": "get_weather", "arguments": {}}')
CUT = 'I look.\n<tool_call>\n{"name": "get_weather", "argum'
NEAR = 'I would call get_weather(city="Oslo") if you agree.'
LEAKED = "The tag <tool_call> opens nothing here."
PLAIN = "It is sunny."
TEXTS = (GOOD, REPAIRED, REFUSED, CUT, NEAR, LEAKED, PLAIN)
LEFT_IN_TEXT = {"model": "m", "choices": [{"message": {"role": "assistant", "content": GOOD}, "finish_reason": "stop"}]}


def logged_reply(
    text: str, line: int = 1, *, model: str = "qwen", server: str = "vllm", path: str = "a.jsonl"
) -> LoggedReply:
    reply = parse(text, tools=TOOLS, format="hermes")
    return LoggedReply(
        reply=reply,
        model=model,
        server=server,
        format="hermes",
        path=path,
        line=line,
        source=text,
        reread=lambda: parse(text, tools=TOOLS, format="hermes", spans=True).spans or (),
    )


def read_reply(response: object, line: int = 1) -> LoggedReply:
    reply = read(response, tools=TOOLS)
    return LoggedReply(reply=reply, model="qwen", format=reply.format, path="a.jsonl", line=line)


def tally_replies(replies: Iterable[LoggedReply]) -> ReplyTally:
    tally = ReplyTally()
    for each in replies:
        tally.add(each)
    return tally
