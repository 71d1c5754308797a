"""What is looked at, as data: each probe is a question, a judge, and what it is called. Another one is another line."""

from __future__ import annotations

from typing import Any

import msgspec

from rightcall.doctor import answer_judges as answers
from rightcall.doctor import call_judges as calls
from rightcall.doctor.judging import Judge
from rightcall.doctor.questions import BOTH, WHOLE, Way

STREAMED: tuple[Way, ...] = ("streamed",)


class ServerProbe(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is looked at.

    - `name`: its stable name.
    - `title`: what it is called on screen.
    - `question`: whose answer is judged.
    - `judge`: by which function.
    - `ways`: whole, streamed or both.
    - `refusal`: judges a refusal, where that says more than that there is none.
    - `is_curable`: the proxy can do something about it.
    """

    name: str
    title: str
    question: str
    judge: Judge
    ways: tuple[Way, ...] = BOTH
    refusal: Judge | None = None
    is_curable: bool = True


def _probe(
    name: str, title: str, question: str, judge: Judge, ways: tuple[Way, ...] = BOTH, **more: Any
) -> ServerProbe:
    return ServerProbe(name=name, title=title, question=question, judge=judge, ways=ways, **more)


_LIST = (
    _probe("text", "an answer without tools", "bare", answers.spoken),
    _probe("first_byte", "time to the first byte", "bare", answers.prompt_to_speak),
    _probe("plain_call", "a plain call", "plain", calls.fitting),
    _probe("leak", "no call left in the text", "plain", answers.kept_out_of_text),
    _probe("ids", "ids of calls", "parallel", answers.identified),
    _probe("index", "index of streamed calls", "parallel", answers.indexed, STREAMED),
    _probe("finish", "finish reason", "plain", answers.finished),
    _probe("events", "the dialect's own rules", "plain", answers.in_order),
    _probe("no_arguments", "a call without arguments", "no_arguments", calls.without_arguments),
    _probe("nested", "nested and unicode arguments", "nested", calls.kept_letters),
    _probe("long", "long arguments", "long", calls.long_and_whole),
    _probe("silence", "signs of life in a stream", "long", answers.never_silent, STREAMED),
    _probe("types", "enum and union types", "types", calls.fitting),
    _probe("parallel", "two calls at once", "parallel", calls.both),
    _probe("required", "tool_choice required", "required", answers.forced),
    _probe("named", "tool_choice by name", "named", answers.forced),
    _probe("none", "tool_choice none", "none", answers.uncalled),
    _probe("same_plain", "streamed as whole: a call", "plain", answers.same_both_ways, STREAMED),
    _probe("same_parallel", "streamed as whole: two calls", "parallel", answers.same_both_ways, STREAMED),
    _probe("same_long", "streamed as whole: long", "long", answers.same_both_ways, STREAMED),
    _probe("cut", "cut at max_tokens", "cut", answers.cut_and_said),
    _probe("history", "a history with results", "history", answers.answered),
    _probe("reasoning", "reasoning with tools", "plain", answers.thought_apart),
    _probe("kept", "its own turn sent back", "kept", answers.accepted, WHOLE),
    _probe("dropped", "its turn without reasoning", "dropped", answers.accepted, WHOLE),
    _probe("poisoned", "a broken call in the history", "poisoned", answers.accepted, WHOLE),
    _probe("own_ids", "long ids in the history", "own_ids", answers.accepted, WHOLE),
    _probe("null_content", "null content in the history", "null_content", answers.accepted, WHOLE),
    _probe("orphan", "a result without its call", "orphan", answers.accepted, WHOLE),
    _probe("same_role", "turns of one role in a row", "same_role", answers.accepted, WHOLE),
    _probe("result_parts", "a result in parts", "result_parts", answers.accepted, WHOLE),
    _probe("tool_tokens", "tools counted in the prompt", "plain", answers.counted, WHOLE),
    _probe("prompt", "a long prompt read whole", "filler", answers.whole_prompt, WHOLE, refusal=answers.window_told),
    _probe("constraint", "a constraint that holds", "constraint", answers.constrained, WHOLE, is_curable=False),
    _probe("hard_schema", "schemas with hard keywords", "hard_schema", answers.accepted, WHOLE),
    _probe("strict", "strict tools hold their schema", "strict", answers.strict, WHOLE),
    _probe("prefixed", "a name with a prefix", "prefixed", calls.fitting, WHOLE),
    _probe("client_fields", "fields that clients send", "client_fields", answers.accepted, WHOLE),
    _probe("unknown_field", "a field nobody knows", "unknown_field", answers.accepted, WHOLE),
    _probe("empty_tools", "an empty list of tools", "empty_tools", answers.accepted, WHOLE),
    _probe("other_tools", "tools that are no functions", "other_tools", answers.accepted, WHOLE),
    _probe("tool_names", "names with dots, and long", "tool_names", answers.accepted, WHOLE),
    _probe("image", "an image", "image", answers.accepted, WHOLE),
)
PROBES: dict[str, ServerProbe] = {each.name: each for each in _LIST}
