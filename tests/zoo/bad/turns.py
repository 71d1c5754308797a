"""Turns that go wrong as such: the call is announced and not made, made again and again, cut, or not what was asked."""

from __future__ import annotations

from zoo.bad_server import ALL, BadServer
from zoo.question import Json, Question
from zoo.script import Made, Said, filled
from zoo.speech import Answer
from zoo.spoiling import each_payload, raw, until_told

FULL = {"guard": "full"}


def announces(said: Said, question: Question) -> Said:
    return Said(text=f"I'll do that now. Let me call {said.call.name}.")


def chats(said: Said, question: Question) -> Said:
    return Said(text="Hello! How can I help you?")


def calls_again(said: Said, question: Question) -> Said:
    if not question.tools:
        return said
    tool = next((tool for tool in question.tools if "read" in tool.name), question.tools[0])
    given = filled(tool.schema, question.file, f"cat {question.file}")
    return Said(calls=(Made(tool.name, given, id=f"call_zoo{len(question.calls)}c9"),))


def cut(given: Json) -> str:
    """A limit that nobody tells of: what is written ends in the middle."""
    return '{"path": "hello.txt", "content": "# A long file\\n\\n| one | tw'


def writes(said: Said, question: Question) -> Said:
    """The call that is cut, where the tool for it is there."""
    if not _can_write(question):
        return said
    return said._replace(calls=(said.call._replace(name="write_file"),))


def _can_write(question: Question) -> bool:
    return any(tool.name == "write_file" for tool in question.tools)


def cut_writing(said: Said, question: Question) -> Said:
    return raw(cut)(said, question) if _can_write(question) else said


def counted_short(answer: Answer, question: Question) -> Answer:
    """Of the prompt only its end was read."""

    def change(payload: Json, api: str, at: int) -> None:
        for holder in (payload, payload.get("usage") or {}, payload.get("usageMetadata") or {}):
            for key in ("prompt_tokens", "prompt_eval_count", "promptTokenCount", "input_tokens"):
                if key in holder:
                    holder[key] = 2051

    return each_payload(change)(answer, question)


SERVERS = [
    BadServer(
        "announces", "announced_only", "words about a call, and the end of the turn", apis=ALL, settings=FULL,
        sees="the call that the model made when it was asked once more", says=until_told(announces),
        reports="RooCodeInc/Roo-Code#10547 OpenHands/software-agent-sdk#1896",
    ),
    BadServer(
        "repeats", "repeated_calls", "the same call for the fifth time", sees="the answer", apis=ALL, settings=FULL,
        scene="fifth_time", says=until_told(calls_again), always=True,
        reports="anomalyco/opencode#28596 earendil-works/pi#9637 HKUDS/nanobot#3077",
    ),
    BadServer(
        "ignores_required", "tool_choice_ignored", "text where a call was demanded", scene="required",
        apis=("chat", "responses", "messages", "gemini"), says=until_told(chats), sees="the call that was demanded",
        reports="ollama/ollama#17921 vllm-project/vllm#54808 pydantic/pydantic-ai#2799",
    ),
    BadServer(
        "ignores_none", "tool_choice_ignored", "a call where none was allowed", scene="none", right="no_call",
        sees="no call", apis=("chat", "responses", "messages", "gemini"), says=calls_again, always=True,
        reports="ollama/ollama#17921 vercel/ai#8992",
    ),
    BadServer(
        "cut_says_done", "cut_but_run", "half a call, with the finish reason of a whole one", right="no_call",
        sees="no call, and why", apis=("chat", "responses", "messages"),
        means=writes, says=cut_writing,
        reports="QwenLM/qwen-code#2021 ahwurm/localharness#77 can1357/oh-my-pi#1786",
    ),
    BadServer(
        "cuts_the_prompt", "context_cut", "an answer as if there were no tools", right="told",
        scene="long_prompt", ways=("whole",),
        sees="the same, and a warning that the server read 2051 tokens of many more", apis=("chat", "ollama"),
        says=lambda said, question: Said(text="I have no tools."), spoils=counted_short,
        reports="ollama/ollama#18107 ollama/ollama#7987 haoxiang-xu/PuPu#129",
    ),
]  # fmt: skip
