"""Ids of calls that are missing, empty, null, no texts, twice, or the same in every round."""

from __future__ import annotations

from zoo.bad_server import BadServer
from zoo.question import Json, Question
from zoo.speech import Answer, Event
from zoo.spoiling import both, calls_in, each_call, id_of, streamed, twice, with_id

NAMED = ("chat", "responses", "messages")


def changing(events: list[Event], question: Question) -> list[Event]:
    """Each piece of a call has an id of its own."""
    for at, (_, payload) in enumerate(events):
        for entry in calls_in("chat", payload):
            entry["id"] = f"chatcmpl-tool-{at}"
    return events


def by_name(answer: Answer, question: Question) -> Answer:
    """`functions.name:0`, counted anew in each answer, whatever the history has."""

    def change(entry: Json, api: str, count: int) -> None:
        if entry.get(id_of(api)):
            entry[id_of(api)] = f"functions.{entry.get('name') or entry['function']['name']}:0"

    return each_call(change)(answer, question)


SERVERS = [
    BadServer(
        "no_id",
        "bad_ids",
        "no id to answer the call by",
        apis=NAMED,
        spoils=with_id(lambda at: ...),
        reports="anomalyco/opencode#4590 openai/openai-node#1946",
    ),
    BadServer(
        "empty_id",
        "bad_ids",
        "an empty id",
        apis=NAMED,
        spoils=with_id(lambda at: ""),
        reports="anomalyco/opencode#4590 QwenLM/qwen-code#8382",
    ),
    BadServer(
        "null_id",
        "bad_ids",
        "null for an id",
        apis=NAMED,
        spoils=with_id(lambda at: None),
        reports="openai/openai-node#1946",
    ),
    BadServer(
        "number_id", "bad_ids", "a number for an id", apis=NAMED, spoils=with_id(int), reports="QwenLM/qwen-code#8382"
    ),
    BadServer(
        "same_id",
        "bad_ids",
        "two calls of one id: one of them is dropped, or the answers are mixed up",
        sees="both calls, each with its own id",
        apis=NAMED,
        means=twice,
        spoils=with_id(lambda at: "call_0"),
        reports="continuedev/continue#12627 NousResearch/hermes-agent#72766",
    ),
    BadServer(
        "ids_of_every_round",
        "bad_ids",
        "an id that the conversation has already",
        sees="an id that is new",
        apis=NAMED,
        scene="second_round",
        spoils=by_name,
        reports="open-webui/open-webui#28570 NousResearch/hermes-agent#72766",
    ),
    BadServer(
        "changing_id",
        "bad_ids",
        "a call whose id changes with each piece",
        ways=("stream",),
        spoils=both(streamed(changing)),
        reports="QwenLM/qwen-code#8382 danny-avila/LibreChat#13987",
    ),
]
