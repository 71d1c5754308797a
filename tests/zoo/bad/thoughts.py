"""Think tags that swallow the call, and reasoning that must be sent back."""

from __future__ import annotations

from typing import Any

from zoo.bad_server import BadServer, Refusal
from zoo.question import Json, Question, dicts
from zoo.script import Output, render_output
from zoo.speech import Answer
from zoo.spoiling import each_call, each_payload


def write_in_think_tags(output: Output, question: Question) -> Output:
    return Output(text=f"<think>I must read the file.\n{render_output(output)}\n</think>")


def write_in_reasoning(output: Output, question: Question) -> Output:
    return Output(reasoning=f"I must read the file.\n{render_output(output)}")


def write_after_open_reasoning(output: Output, question: Question) -> Output:
    """Write only the end of the reasoning: the template wrote `<think>`."""
    return Output(text=f"I must read the file.\n</think>\n\n{render_output(output)}")


def draft_another_call(output: Output, question: Question) -> Output:
    """Draft another call in the reasoning first."""
    other = render_output(
        Output(calls=(output.call._replace(name="write_file", arguments={"path": "x", "content": "y"}),))
    )
    return Output(text=f"<think>I could write:\n{other}\nNo, reading is enough.</think>\n{render_output(output)}")


LOST = "no call: it stands in the reasoning"
SERVERS = [
    BadServer(
        "call_in_think", "think_tags", LOST, output=write_in_think_tags, apis=("chat", "ollama"),
        reports="vllm-project/vllm#55759 waybarrios/vllm-mlx#168",
    ),
    BadServer(
        "call_in_reasoning", "think_tags", LOST, output=write_in_reasoning, apis=("chat", "messages", "ollama"),
        reports="vllm-project/vllm#55759",
    ),
    BadServer(
        "think_without_opening", "think_tags", "reasoning and call as text", output=write_after_open_reasoning,
        apis=("chat", "ollama"), reports="unslothai/unsloth#5704",
    ),
    BadServer(
        "rehearsal_in_think", "think_tags", "reasoning and calls as text; a parser that looks there runs both",
        result="the one call that was made", output=draft_another_call, apis=("chat", "messages"),
        reports="lmstudio-ai/lmstudio-bug-tracker#1592 InternLM/lmdeploy#4580 unslothai/unsloth#5704",
    ),
]  # fmt: skip


# -- data that must be sent back ---------------------------------------------------------------------------------------


def add_reasoning(output: Output, question: Question) -> Output:
    return output._replace(reasoning="I must read the file.")


def past_calls(question: Question) -> list[Json]:
    """Return the assistant's turns with calls."""
    return [turn for turn in question.turns if turn.get("tool_calls")]


def require_reasoning(question: Question) -> Refusal | None:
    incomplete = [turn for turn in past_calls(question) if not str(turn.get("reasoning_content") or "")]
    return (
        Refusal("The `reasoning_content` in the thinking mode must be passed back to the API.") if incomplete else None
    )


def add_signatures(answer: Answer, question: Question) -> Answer:
    """Add a signature of the reasoning to each call."""

    def chat(entry: Json, api: str, count: int) -> None:
        if "id" in entry:
            entry["extra_content"] = {"google": {"thought_signature": "c2lnbmVk"}}

    def gemini(payload: Any, api: str, at: int) -> None:
        for candidate in dicts(payload.get("candidates")):
            for part in dicts((candidate.get("content") or {}).get("parts")):
                if "functionCall" in part:
                    part["thoughtSignature"] = "c2lnbmVk"

    return (each_call(chat) if question.api == "chat" else each_payload(gemini))(answer, question)


def require_signatures(question: Question) -> Refusal | None:
    parts = [part for turn in question.turns for part in dicts(turn.get("parts")) if "functionCall" in part]
    incomplete = [part for part in parts if part.get("thoughtSignature") != "c2lnbmVk"]
    incomplete += [call for turn in past_calls(question) for call in turn["tool_calls"] if "extra_content" not in call]
    return Refusal("Function call is missing a thought_signature in functionCall parts.") if incomplete else None


def require_thinking(question: Question) -> Refusal | None:
    turns = [dicts(turn.get("content")) for turn in question.turns if turn.get("role") == "assistant"]
    incomplete = [blocks for blocks in turns if blocks and not any(block.get("signature") for block in blocks)]
    return Refusal("Expected `thinking` or `redacted_thinking`, but found `tool_use`.") if incomplete else None


REFUSED = "the second request is refused: what the server gave with its call is not there"
SERVERS += [
    BadServer(
        "wants_reasoning_back", "lost_reasoning", REFUSED, result="the answer", scene="two_rounds",
        output=add_reasoning, refusal=require_reasoning,
        reports="continuedev/continue#10193 charmbracelet/crush#2696 langchain-ai/langchain#34166",
    ),
    BadServer(
        "wants_signatures_back", "lost_reasoning", REFUSED, result="the answer", scene="two_rounds",
        apis=("chat", "gemini"), damage=add_signatures, refusal=require_signatures,
        reports="Gitlawb/openclaude#67 langgenius/dify-official-plugins#2088 AstrBotDevs/AstrBot#9217",
    ),
    BadServer(
        "wants_thinking_back", "lost_reasoning", REFUSED, result="the answer", scene="two_rounds", apis=("messages",),
        output=add_reasoning, refusal=require_thinking, reports="earendil-works/pi#3636 mastra-ai/mastra#13635",
    ),
]  # fmt: skip
