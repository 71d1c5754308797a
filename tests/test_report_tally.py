"""A tally of replies: what it counts, that it merges, that its samples are real and its size has a bound."""

import re

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
    answered,
    logged,
    tallied,
)

REPLIES = st.lists(
    st.builds(
        lambda text, model, line, more: logged(text + more, line, model=model),
        st.sampled_from(TEXTS),
        st.sampled_from(["a", "b", "c"]),
        st.integers(1, 50),
        st.sampled_from(["", "!", " ?"]),
    ),
    max_size=24,
)


def merged(*parts: ReplyTally) -> ReplyTally:
    whole = ReplyTally()
    for part in parts:
        whole.merge(part)
    return whole


# -- what is counted ---------------------------------------------------------------------------------------------------


def found(reply: LoggedReply) -> list[tuple[str, str]]:
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
def test_a_reply_is_what_was_wrong_with_it(text: str, expected: list[tuple[str, str]]) -> None:
    reply = parse(text, tools=TOOLS, format="llama3_json" if "im_end" in text else "hermes")
    assert found(LoggedReply(reply=reply, source=text)) == expected


@pytest.mark.parametrize(
    "response, expected",
    [
        (LEFT_IN_TEXT, [("leaked", "left_in_text")]),
        ({"error": {"message": "overloaded", "code": 529}}, [("cut", "provider_error")]),
        ({"choices": [{"message": {"content": "It is"}, "finish_reason": "length"}]}, [("cut", "length")]),
        ({"choices": [{"message": {"content": "It is."}, "finish_reason": "stop"}]}, []),
    ],
)
def test_an_answer_of_a_server_is_what_was_wrong_with_it(response: object, expected: list[tuple[str, str]]) -> None:
    assert found(answered(response)) == expected


def test_the_parts_of_a_count_add_up() -> None:
    tally = tallied([logged(text, at) for at, text in enumerate(TEXTS * 3)])
    counts = tally.total.counts
    assert counts["replies"] == 21
    assert counts["may_run"] + counts["refused"] == counts["calls"] == 12
    assert counts["as_written"] + counts["repaired"] == counts["may_run"] == 6
    assert (counts["near"], counts["cut"], counts["leaked"], counts["calling"], counts["troubled"]) == (3, 3, 3, 12, 12)


def test_a_further_call_of_a_reply_is_no_reply() -> None:
    first, second = [LoggedReply(reply=parse(GOOD), is_first=is_first) for is_first in (True, False)]
    counts = tallied([first, second]).total.counts
    assert (counts["replies"], counts["calls"]) == (1, 2)


def test_names_that_are_not_ours_are_counted_as_other() -> None:
    call = Call("f", repairs=(Repair("their_rule", "exact", "", "", ""),))
    bad = Call("f", problems=(Problem("their_code", "?", call=1),))
    reply = Reply(parts=(call, bad), problems=bad.problems)
    assert found(LoggedReply(reply=reply)) == [("repaired", "other"), ("refused", "other")]
    assert all(meaning(name) for name in ("other", "missing", "scalar_type", "left_in_text", "length"))


# -- merging -----------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(REPLIES, REPLIES, REPLIES)
def test_a_tally_merges_to_what_one_pass_gives_in_any_order(a: list, b: list, c: list) -> None:  # type: ignore[type-arg]
    once = tallied([*a, *b, *c])
    assert merged(tallied(a), tallied(b), tallied(c)) == once
    assert merged(tallied(a), merged(tallied(b), tallied(c))) == once
    assert merged(tallied(c), tallied(a), tallied(b)) == once
    assert merged(once, ReplyTally()) == once


def many(number: int) -> list[LoggedReply]:
    reply = parse(GOOD)
    return [LoggedReply(reply=reply, model=f"model-{at}", path="a", line=at) for at in range(number)]


def test_a_log_that_names_a_new_model_on_each_line_has_a_bounded_tally_all_the_same() -> None:
    replies = many(1_000)
    once = tallied(replies)
    assert len(once.groups) == 200
    assert once.total.counts["replies"] == 1_000
    assert merged(*[tallied(replies[at::7]) for at in range(7)]) == once
    assert once.largest()[-1][0] == GroupKey("(the rest)", "", "")


# -- samples -----------------------------------------------------------------------------------------------------------


def test_a_sample_shows_what_it_is_about() -> None:
    for text, about in [
        (REFUSED, '{"name": "get_weather", "arguments": {}}'),
        (LEAKED, "<tool_call>"),
        (CUT, '{"name'),
    ]:
        tally = tallied([logged(text, 7)])
        for sample in [each for kept in tally.total.samples.values() for each in kept]:
            start, end = sample.found
            assert sample.text == text
            assert sample.text[start:end].strip().startswith(about)
            assert sample.place == "a.jsonl:7"
            assert [span.start for span in sample.spans] == [0, *[span.end for span in sample.spans[:-1]]]
            assert sample.spans[-1].end == len(text)


def test_each_finding_has_two_different_samples_and_short_ones_first() -> None:
    long = REFUSED + "x" * 3_000
    tally = tallied(
        [logged(text, at) for at, text in enumerate([long, REFUSED, REFUSED, "So. " + REFUSED, long + "y"])]
    )
    kept = tally.total.samples[Finding("refused", "missing")]
    assert len(kept) == SAMPLES_PER_FINDING
    assert {sample.text for sample in kept} == {REFUSED, "So. " + REFUSED}
    assert {sample.line for sample in kept} == {1, 3}


def test_of_a_long_reply_only_the_place_is_kept() -> None:
    text = "a" * 5_000 + REFUSED + "b" * 5_000
    (sample,) = tallied([logged(text)]).total.samples[Finding("refused", "missing")]
    assert len(sample.text) == 640
    assert sample.before + len(sample.text) + sample.after == len(text)
    start, end = sample.found
    assert sample.text[start:end] == '{"name": "get_weather", "arguments": {}}'


def test_secrets_in_samples_are_covered_and_nothing_moves() -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwx0123456789"
    text = f"The key is {key}.\n" + hermes_secret(key)
    (sample,) = tallied([logged(text)]).total.samples[Finding("refused", "missing")]
    assert key not in sample.text
    assert key not in sample.says
    assert len(sample.text) == len(text)
    assert re.search("•{20,}", sample.text)


def hermes_secret(key: str) -> str:
    return f'<tool_call>\n{{"name": "get_weather", "arguments": {{"api_key": "{key}"}}}}\n</tool_call>'


def test_an_answer_that_a_server_took_apart_is_shown_by_its_parts() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    message = {"role": "assistant", "content": "Let me see.", "tool_calls": [call]}
    tally = tallied([answered({"choices": [{"message": message, "finish_reason": "tool_calls"}]})])
    (sample,) = tally.total.samples[Finding("refused", "missing")]
    assert sample.text == "Let me see.\nget_weather {}\n"
    assert sample.text[slice(*sample.found)] == "{}"


# -- before and after --------------------------------------------------------------------------------------------------


def times(**texts: int) -> ReplyTally:
    named = {"good": GOOD, "refused": REFUSED, "plain": PLAIN, "near": NEAR}
    return tallied(logged(named[name], at) for name, number in texts.items() for at in range(number))


def test_a_log_is_neither_better_nor_worse_than_itself() -> None:
    tally = tallied([logged(text, at) for at, text in enumerate(TEXTS * 5)])
    assert {change.verdict for change in compare_logs(tally, tally).changes} == {"same"}


def test_a_regression_is_distinguished_from_chance() -> None:
    comparison = compare_logs(times(good=190, refused=10, near=5), times(good=150, refused=50, near=6))
    worse = {(change.scope, change.measure, change.name) for change in comparison.of("worse")}
    assert worse == {(ALL, "may_run", ""), (ALL, "as_written", ""), (ALL, "refused", "missing")}
    assert not comparison.of("better")
    assert {change.measure for change in comparison.of("same")} >= {"near"}


def test_better_and_worse_change_places_with_the_logs() -> None:
    one, other = times(good=190, refused=10), times(good=150, refused=50, near=60)
    there, back = compare_logs(one, other), compare_logs(other, one)
    assert {change.measure for change in there.of("worse")} == {change.measure for change in back.of("better")}
    assert {change.measure for change in there.of("changed")} == {"calling"} == {c.measure for c in back.of("changed")}


def test_models_are_compared_where_there_are_several() -> None:
    def two(refused: int) -> ReplyTally:
        texts = [GOOD] * (100 - refused) + [REFUSED] * refused
        a = [logged(text, at, model="a") for at, text in enumerate(texts)]
        return tallied([*a, *[logged(GOOD, at, model="b") for at in range(1_000)]])

    worse = compare_logs(two(0), two(20)).of("worse")
    assert {change.scope for change in worse} == {ALL, "a"}
    assert "a" not in {change.scope for change in compare_logs(times(good=5), times(good=6)).changes}


def test_a_hundred_comparisons_of_the_same_find_nothing() -> None:
    """Without a correction, five of a hundred would."""
    texts = [GOOD, GOOD, GOOD, REFUSED]
    tally = [tallied(logged(texts[(at * step) % 4], at, model=f"m{at % 25}") for at in range(400)) for step in (1, 3)]
    comparison = compare_logs(*tally)
    assert len(comparison.changes) > 50
    assert not comparison.of("worse")
    assert comparison.changes[0].p == min(change.p for change in comparison.changes)


def test_reading_an_answer_never_needs_its_text() -> None:
    assert find_findings(LoggedReply(reply=read({"choices": 3}))) != []
