"""Ids of calls that are missing, empty, null, no text, duplicated, or the same in every round."""

from __future__ import annotations

from zoo.bad_server import BadServer
from zoo.question import Json, Question
from zoo.speech import Answer, Event
from zoo.spoiling import calls_in, combine, each_call, id_of, streamed, twice, with_id

DIALECTS_WITH_IDS = ("chat", "responses", "messages")


def change_id_in_each_piece(events: list[Event], question: Question) -> list[Event]:
    """Give each piece of a call another id."""
    for at, (_, payload) in enumerate(events):
        for entry in calls_in("chat", payload):
            entry["id"] = f"chatcmpl-tool-{at}"
    return events


def number_ids_by_name(answer: Answer, question: Question) -> Answer:
    """Number the ids `functions.name:0` again in each answer, regardless of the history."""

    def change(entry: Json, api: str, count: int) -> None:
        if entry.get(id_of(api)):
            entry[id_of(api)] = f"functions.{entry.get('name') or entry['function']['name']}:0"

    return each_call(change)(answer, question)


SERVERS = [
    BadServer(
        "no_id",
        "bad_ids",
        "no id to answer the call by",
        apis=DIALECTS_WITH_IDS,
        damage=with_id(lambda at: ...),
        reports="anomalyco/opencode#4590 openai/openai-node#1946",
    ),
    BadServer(
        "empty_id",
        "bad_ids",
        "an empty id",
        apis=DIALECTS_WITH_IDS,
        damage=with_id(lambda at: ""),
        reports="anomalyco/opencode#4590 QwenLM/qwen-code#8382",
    ),
    BadServer(
        "null_id",
        "bad_ids",
        "null for an id",
        apis=DIALECTS_WITH_IDS,
        damage=with_id(lambda at: None),
        reports="openai/openai-node#1946",
    ),
    BadServer(
        "number_id",
        "bad_ids",
        "a number for an id",
        apis=DIALECTS_WITH_IDS,
        damage=with_id(int),
        reports="QwenLM/qwen-code#8382",
    ),
    BadServer(
        "same_id",
        "bad_ids",
        "two calls of one id: one of them is dropped, or the answers are mixed up",
        result="both calls, each with its own id",
        apis=DIALECTS_WITH_IDS,
        intent=twice,
        damage=with_id(lambda at: "call_0"),
        reports="continuedev/continue#12627 NousResearch/hermes-agent#72766",
    ),
    BadServer(
        "ids_of_every_round",
        "bad_ids",
        "an id that the conversation has already",
        result="an id that is new",
        apis=DIALECTS_WITH_IDS,
        scene="second_round",
        damage=number_ids_by_name,
        reports="open-webui/open-webui#28570 NousResearch/hermes-agent#72766",
    ),
    BadServer(
        "changing_id",
        "bad_ids",
        "a call whose id changes with each piece",
        modes=("stream",),
        damage=combine(streamed(change_id_in_each_piece)),
        reports="QwenLM/qwen-code#8382 danny-avila/LibreChat#13987",
    ),
]
