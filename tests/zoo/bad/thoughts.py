"""Think tags that swallow the call, and reasoning that is wanted back."""

from __future__ import annotations

from typing import Any

from zoo.bad_server import BadServer, Refused
from zoo.question import Json, Question, dicts
from zoo.script import Said, written_out
from zoo.speech import Answer
from zoo.spoiling import each_call, each_payload


def inside(said: Said, question: Question) -> Said:
    return Said(text=f"<think>I must read the file.\n{written_out(said)}\n</think>")


def in_its_field(said: Said, question: Question) -> Said:
    return Said(reasoning=f"I must read the file.\n{written_out(said)}")


def behind_prefilled(said: Said, question: Question) -> Said:
    """The template wrote `<think>`, so the answer has only its end."""
    return Said(text=f"I must read the file.\n</think>\n\n{written_out(said)}")


def rehearsed(said: Said, question: Question) -> Said:
    """Another call is thought of first."""
    other = written_out(Said(calls=(said.call._replace(name="write_file", arguments={"path": "x", "content": "y"}),)))
    return Said(text=f"<think>I could write:\n{other}\nNo, reading is enough.</think>\n{written_out(said)}")


LOST = "no call: it stands in the reasoning"
SERVERS = [
    BadServer(
        "call_in_think", "think_tags", LOST, says=inside, apis=("chat", "ollama"),
        reports="vllm-project/vllm#55759 waybarrios/vllm-mlx#168",
    ),
    BadServer(
        "call_in_reasoning", "think_tags", LOST, says=in_its_field, apis=("chat", "messages", "ollama"),
        reports="vllm-project/vllm#55759",
    ),
    BadServer(
        "think_without_opening", "think_tags", "reasoning and call as text", says=behind_prefilled,
        apis=("chat", "ollama"), reports="unslothai/unsloth#5704",
    ),
    BadServer(
        "rehearsal_in_think", "think_tags", "reasoning and calls as text; a parser that looks there runs both",
        sees="the one call that was made", says=rehearsed, apis=("chat", "messages"),
        reports="lmstudio-ai/lmstudio-bug-tracker#1592 InternLM/lmdeploy#4580 unslothai/unsloth#5704",
    ),
]  # fmt: skip


# -- wanted back -------------------------------------------------------------------------------------------------------


def thinks(said: Said, question: Question) -> Said:
    return said._replace(reasoning="I must read the file.")


def past_calls(question: Question) -> list[Json]:
    """The assistant's turns with calls."""
    return [turn for turn in question.turns if turn.get("tool_calls")]


def wants_reasoning(question: Question) -> Refused | None:
    bare = [turn for turn in past_calls(question) if not str(turn.get("reasoning_content") or "")]
    return Refused("The `reasoning_content` in the thinking mode must be passed back to the API.") if bare else None


def signs(answer: Answer, question: Question) -> Answer:
    """Each call goes with a signature of the thought behind it."""

    def chat(entry: Json, api: str, count: int) -> None:
        if "id" in entry:
            entry["extra_content"] = {"google": {"thought_signature": "c2lnbmVk"}}

    def gemini(payload: Any, api: str, at: int) -> None:
        for candidate in dicts(payload.get("candidates")):
            for part in dicts((candidate.get("content") or {}).get("parts")):
                if "functionCall" in part:
                    part["thoughtSignature"] = "c2lnbmVk"

    return (each_call(chat) if question.api == "chat" else each_payload(gemini))(answer, question)


def wants_signatures(question: Question) -> Refused | None:
    parts = [part for turn in question.turns for part in dicts(turn.get("parts")) if "functionCall" in part]
    bare = [part for part in parts if part.get("thoughtSignature") != "c2lnbmVk"]
    bare += [call for turn in past_calls(question) for call in turn["tool_calls"] if "extra_content" not in call]
    return Refused("Function call is missing a thought_signature in functionCall parts.") if bare else None


def wants_thinking(question: Question) -> Refused | None:
    turns = [dicts(turn.get("content")) for turn in question.turns if turn.get("role") == "assistant"]
    bare = [blocks for blocks in turns if blocks and not any(block.get("signature") for block in blocks)]
    return Refused("Expected `thinking` or `redacted_thinking`, but found `tool_use`.") if bare else None


REFUSED = "the second request is refused: what the server gave with its call is not there"
SERVERS += [
    BadServer(
        "wants_reasoning_back", "lost_reasoning", REFUSED, sees="the answer", scene="two_rounds",
        says=thinks, refuses=wants_reasoning,
        reports="continuedev/continue#10193 charmbracelet/crush#2696 langchain-ai/langchain#34166",
    ),
    BadServer(
        "wants_signatures_back", "lost_reasoning", REFUSED, sees="the answer", scene="two_rounds",
        apis=("chat", "gemini"), spoils=signs, refuses=wants_signatures,
        reports="Gitlawb/openclaude#67 langgenius/dify-official-plugins#2088 AstrBotDevs/AstrBot#9217",
    ),
    BadServer(
        "wants_thinking_back", "lost_reasoning", REFUSED, sees="the answer", scene="two_rounds", apis=("messages",),
        says=thinks, refuses=wants_thinking, reports="earendil-works/pi#3636 mastra-ai/mastra#13635",
    ),
]  # fmt: skip
