"""A tally of replies: its counts, merging, correct samples and bounded size."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightcall import parse, read
from rightcall.evaluation.reports.findings import Finding, LoggedReply, find_findings, meaning
from rightcall.evaluation.reports.log_changes import ALL, compare_logs
from rightcall.evaluation.reports.reply_samples import SAMPLES_PER_FINDING
from rightcall.evaluation.reports.reply_tally import GroupKey, ReplyTally
from rightcall.types import Call, Problem, Repair, Reply
from support.reported import (
    CUT,
    GOOD,
    LEAKED,
    LEFT_IN_TEXT,
    NEAR,
    PLAIN,
    REFUSED,
    REPAIRED,
    TEXTS,
    TOOLS,
    logged_reply,
    read_reply,
    tally_replies,
)

REPLIES = st.lists(
    st.builds(
        lambda text, model, line, more: logged_reply(text + more, line, model=model),
        st.sampled_from(TEXTS),
        st.sampled_from(["a", "b", "c"]),
        st.integers(1, 50),
        st.sampled_from(["", "!", " ?"]),
    ),
    max_size=24,
)


def merge_tallies(*parts: ReplyTally) -> ReplyTally:
    whole = ReplyTally()
    for part in parts:
        whole.merge(part)
    return whole


# -- counts ------------------------------------------------------------------------------------------------------------


def findings_of(reply: LoggedReply) -> list[tuple[str, str]]:
    return [(each.finding.kind, each.finding.name) for each in find_findings(reply)]


@pytest.mark.parametrize(
    "text, expected",
    [
        (GOOD, []),
        (PLAIN, []),
        (REPAIRED, [("repaired", "scalar_type")]),
        (REFUSED, [("refused", "missing")]),
        (CUT, [("refused", "truncated"), ("cut", "truncated")]),
        (NEAR, [("near", "looks_like_a_call")]),
        (LEAKED, [("leaked", "opener_without_call")]),
        ("Fine.<|im_end|>\n<|im_start|>user", [("leaked", "special_token")]),
        ("Write `<|im_end|>` at the end.", []),
    ],
)
def test_the_findings_of_a_reply_are_its_faults(text: str, expected: list[tuple[str, str]]) -> None:
    reply = parse(text, tools=TOOLS, format="llama3_json" if "im_end" in text else "hermes")
    assert findings_of(LoggedReply(reply=reply, source=text)) == expected


@pytest.mark.parametrize(
    "response, expected",
    [
        (LEFT_IN_TEXT, [("leaked", "left_in_text")]),
        ({"error": {"message": "overloaded", "code": 529}}, [("cut", "provider_error")]),
        ({"choices": [{"message": {"content": "It is"}, "finish_reason": "length"}]}, [("cut", "length")]),
        ({"choices": [{"message": {"content": "It is."}, "finish_reason": "stop"}]}, []),
    ],
)
def test_the_findings_of_a_server_response_are_its_faults(response: object, expected: list[tuple[str, str]]) -> None:
    assert findings_of(read_reply(response)) == expected


def test_partial_counts_add_up() -> None:
    tally = tally_replies([logged_reply(text, at) for at, text in enumerate(TEXTS * 3)])
    counts = tally.total.counts
    assert counts["replies"] == 21
    assert counts["may_run"] + counts["refused"] == counts["calls"] == 12
    assert counts["as_written"] + counts["repaired"] == counts["may_run"] == 6
    assert (counts["near"], counts["cut"], counts["leaked"], counts["calling"], counts["troubled"]) == (3, 3, 3, 12, 12)


def test_a_further_call_of_a_reply_is_not_counted_as_a_reply() -> None:
    first, second = [LoggedReply(reply=parse(GOOD), is_first=is_first) for is_first in (True, False)]
    counts = tally_replies([first, second]).total.counts
    assert (counts["replies"], counts["calls"]) == (1, 2)


def test_unknown_rules_and_codes_are_counted_as_other() -> None:
    call = Call("f", repairs=(Repair("their_rule", "exact", "", "", ""),))
    bad = Call("f", problems=(Problem("their_code", "?", call=1),))
    reply = Reply(parts=(call, bad), problems=bad.problems)
    assert findings_of(LoggedReply(reply=reply)) == [("repaired", "other"), ("refused", "other")]
    assert all(meaning(name) for name in ("other", "missing", "scalar_type", "left_in_text", "length"))


# -- merging -----------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(REPLIES, REPLIES, REPLIES)
def test_merged_tallies_equal_one_pass_in_any_order(a: list, b: list, c: list) -> None:  # type: ignore[type-arg]
    once = tally_replies([*a, *b, *c])
    assert merge_tallies(tally_replies(a), tally_replies(b), tally_replies(c)) == once
    assert merge_tallies(tally_replies(a), merge_tallies(tally_replies(b), tally_replies(c))) == once
    assert merge_tallies(tally_replies(c), tally_replies(a), tally_replies(b)) == once
    assert merge_tallies(once, ReplyTally()) == once


def replies_of_many_models(number: int) -> list[LoggedReply]:
    reply = parse(GOOD)
    return [LoggedReply(reply=reply, model=f"model-{at}", path="a", line=at) for at in range(number)]


def test_the_number_of_groups_is_bounded_for_a_log_with_very_many_models() -> None:
    replies = replies_of_many_models(1_000)
    once = tally_replies(replies)
    assert len(once.groups) == 200
    assert once.total.counts["replies"] == 1_000
    assert merge_tallies(*[tally_replies(replies[at::7]) for at in range(7)]) == once
    assert once.largest()[-1][0] == GroupKey("(the rest)", "", "")


# -- samples -----------------------------------------------------------------------------------------------------------


def test_a_sample_marks_the_text_of_its_finding() -> None:
    for text, about in [
        (REFUSED, '{"name": "get_weather", "arguments": {}}'),
        (LEAKED, "<tool_call>"),
        (CUT, '{"name'),
    ]:
        tally = tally_replies([logged_reply(text, 7)])
        for sample in [each for kept in tally.total.samples.values() for each in kept]:
            start, end = sample.found
            assert sample.text == text
            assert sample.text[start:end].strip().startswith(about)
            assert sample.place == "a.jsonl:7"
            assert [span.start for span in sample.spans] == [0, *[span.end for span in sample.spans[:-1]]]
            assert sample.spans[-1].end == len(text)


def test_each_finding_keeps_two_different_short_samples() -> None:
    long = REFUSED + "x" * 3_000
    tally = tally_replies(
        [logged_reply(text, at) for at, text in enumerate([long, REFUSED, REFUSED, "So. " + REFUSED, long + "y"])]
    )
    kept = tally.total.samples[Finding("refused", "missing")]
    assert len(kept) == SAMPLES_PER_FINDING
    assert {sample.text for sample in kept} == {REFUSED, "So. " + REFUSED}
    assert {sample.line for sample in kept} == {1, 3}


def test_a_sample_of_a_long_reply_is_an_excerpt() -> None:
    text = "a" * 5_000 + REFUSED + "b" * 5_000
    (sample,) = tally_replies([logged_reply(text)]).total.samples[Finding("refused", "missing")]
    assert len(sample.text) == 640
    assert sample.before + len(sample.text) + sample.after == len(text)
    start, end = sample.found
    assert sample.text[start:end] == '{"name": "get_weather", "arguments": {}}'


def test_secrets_in_samples_are_masked_with_the_same_length() -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwx0123456789"
    text = f"The key is {key}.\n" + hermes_secret(key)
    (sample,) = tally_replies([logged_reply(text)]).total.samples[Finding("refused", "missing")]
    assert key not in sample.text
    assert key not in sample.says
    assert len(sample.text) == len(text)
    assert re.search("•{20,}", sample.text)


def hermes_secret(key: str) -> str:
    return f'<tool_call>\n{{"name": "get_weather", "arguments": {{"api_key": "{key}"}}}}\n</tool_call>'


def test_a_sample_of_native_calls_shows_their_parts() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    message = {"role": "assistant", "content": "Let me see.", "tool_calls": [call]}
    tally = tally_replies([read_reply({"choices": [{"message": message, "finish_reason": "tool_calls"}]})])
    (sample,) = tally.total.samples[Finding("refused", "missing")]
    assert sample.text == "Let me see.\nget_weather {}\n"
    assert sample.text[slice(*sample.found)] == "{}"


def test_calls_with_equal_text_have_places_one_after_the_other() -> None:
    text = f"{GOOD}\n{GOOD}\nAnd again:\n{REFUSED}{GOOD}{REFUSED}"
    logged = logged_reply(text)
    places = [place for place in logged.call_places(text) if place is not None]
    assert [text[start:end] for start, end in places] == [call.raw for call in logged.reply.attempts]
    assert len(places) == 5 and all(end <= start for (_, end), (start, _) in pairwise(places))


def test_a_sample_marks_the_call_of_its_finding_and_not_one_before_it_with_equal_text() -> None:
    functions = [{"name": name, "arguments": "{}"} for name in ("ping", "get_weather", "ping")]
    calls = [{"id": f"{at}", "type": "function", "function": each} for at, each in enumerate(functions)]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    tally = tally_replies([read_reply({"choices": [{"message": message, "finish_reason": "tool_calls"}]})])
    (sample,) = tally.total.samples[Finding("refused", "missing")]
    assert sample.text == "ping {}\nget_weather {}\nping {}\n"
    start = sample.text.index("get_weather") + len("get_weather ")
    assert sample.found == (start, start + len("{}"))


# -- comparison of two logs --------------------------------------------------------------------------------------------


def tally_of(**texts: int) -> ReplyTally:
    named = {"good": GOOD, "refused": REFUSED, "plain": PLAIN, "near": NEAR}
    return tally_replies(logged_reply(named[name], at) for name, number in texts.items() for at in range(number))


def test_a_log_compared_with_itself_has_no_changes() -> None:
    tally = tally_replies([logged_reply(text, at) for at, text in enumerate(TEXTS * 5)])
    assert {change.verdict for change in compare_logs(tally, tally).changes} == {"same"}


def test_a_regression_is_distinguished_from_chance() -> None:
    comparison = compare_logs(tally_of(good=190, refused=10, near=5), tally_of(good=150, refused=50, near=6))
    worse = {(change.scope, change.measure, change.name) for change in comparison.of("worse")}
    assert worse == {(ALL, "may_run", ""), (ALL, "as_written", ""), (ALL, "refused", "missing")}
    assert not comparison.of("better")
    assert {change.measure for change in comparison.of("same")} >= {"near"}


def test_swapping_the_logs_swaps_better_and_worse() -> None:
    one, other = tally_of(good=190, refused=10), tally_of(good=150, refused=50, near=60)
    there, back = compare_logs(one, other), compare_logs(other, one)
    assert {change.measure for change in there.of("worse")} == {change.measure for change in back.of("better")}
    assert {change.measure for change in there.of("changed")} == {"calling"} == {c.measure for c in back.of("changed")}


def test_several_models_are_compared_separately() -> None:
    def tally_of_two_models(refused: int) -> ReplyTally:
        texts = [GOOD] * (100 - refused) + [REFUSED] * refused
        a = [logged_reply(text, at, model="a") for at, text in enumerate(texts)]
        return tally_replies([*a, *[logged_reply(GOOD, at, model="b") for at in range(1_000)]])

    worse = compare_logs(tally_of_two_models(0), tally_of_two_models(20)).of("worse")
    assert {change.scope for change in worse} == {ALL, "a"}
    assert "a" not in {change.scope for change in compare_logs(tally_of(good=5), tally_of(good=6)).changes}


def test_many_comparisons_of_equal_logs_report_no_change() -> None:
    """Without a correction, about five of a hundred comparisons would report one."""
    texts = [GOOD, GOOD, GOOD, REFUSED]
    tally = [
        tally_replies(logged_reply(texts[(at * step) % 4], at, model=f"m{at % 25}") for at in range(400))
        for step in (1, 3)
    ]
    comparison = compare_logs(*tally)
    assert len(comparison.changes) > 50
    assert not comparison.of("worse")
    assert comparison.changes[0].p == min(change.p for change in comparison.changes)


def test_findings_of_a_response_do_not_need_its_text() -> None:
    assert find_findings(LoggedReply(reply=read({"choices": 3}))) != []
