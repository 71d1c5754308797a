"""Turns that fail as a whole: the call is announced and not made, repeated, truncated, or not what was requested."""

from __future__ import annotations

from zoo.bad_server import ALL, BadServer
from zoo.question import Json, Question
from zoo.script import Output, ScriptedCall, fill_arguments
from zoo.speech import Answer
from zoo.spoiling import each_payload, raw, until_feedback

FULL = {"guard": "full"}


def announce_call(output: Output, question: Question) -> Output:
    return Output(text=f"I'll do that now. Let me call {output.call.name}.")


def chat(output: Output, question: Question) -> Output:
    return Output(text="Hello! How can I help you?")


def repeat_call(output: Output, question: Question) -> Output:
    if not question.tools:
        return output
    tool = next((tool for tool in question.tools if "read" in tool.name), question.tools[0])
    arguments = fill_arguments(tool.schema, question.file, f"cat {question.file}")
    return Output(calls=(ScriptedCall(tool.name, arguments, id=f"call_zoo{len(question.calls)}c9"),))


def truncate_arguments(arguments: Json) -> str:
    """Truncate the arguments without reporting a limit."""
    return '{"path": "hello.txt", "content": "# A long file\\n\\n| one | tw'


def call_write_file(output: Output, question: Question) -> Output:
    """Make the call that is truncated, if the tool for it is offered."""
    if not _can_write(question):
        return output
    return output._replace(calls=(output.call._replace(name="write_file"),))


def _can_write(question: Question) -> bool:
    return any(tool.name == "write_file" for tool in question.tools)


def truncate_write_file(output: Output, question: Question) -> Output:
    return raw(truncate_arguments)(output, question) if _can_write(question) else output


def reduce_prompt_tokens(answer: Answer, question: Question) -> Answer:
    """Report a small number of prompt tokens, as if only the end of the prompt was read."""

    def change(payload: Json, api: str, at: int) -> None:
        for holder in (payload, payload.get("usage") or {}, payload.get("usageMetadata") or {}):
            for key in ("prompt_tokens", "prompt_eval_count", "promptTokenCount", "input_tokens"):
                if key in holder:
                    holder[key] = 2051

    return each_payload(change)(answer, question)


SERVERS = [
    BadServer(
        "announces", "announced_only", "words about a call, and the end of the turn", apis=ALL, settings=FULL,
        result="the call that the model made when it was asked once more", output=until_feedback(announce_call),
        reports="RooCodeInc/Roo-Code#10547 OpenHands/software-agent-sdk#1896",
    ),
    BadServer(
        "repeats", "repeated_calls", "the same call for the fifth time", result="the answer", apis=ALL, settings=FULL,
        scene="fifth_time", output=until_feedback(repeat_call), always=True,
        reports="anomalyco/opencode#28596 earendil-works/pi#9637 HKUDS/nanobot#3077",
    ),
    BadServer(
        "ignores_required", "tool_choice_ignored", "text where a call was demanded", scene="required",
        apis=("chat", "responses", "messages", "gemini"), output=until_feedback(chat),
        result="the call that was demanded",
        reports="ollama/ollama#17921 vllm-project/vllm#54808 pydantic/pydantic-ai#2799",
    ),
    BadServer(
        "ignores_none", "tool_choice_ignored", "a call where none was allowed", scene="none", right="no_call",
        result="no call", apis=("chat", "responses", "messages", "gemini"), output=repeat_call, always=True,
        reports="ollama/ollama#17921 vercel/ai#8992",
    ),
    BadServer(
        "cut_says_done", "cut_but_run", "half a call, with the finish reason of a whole one", right="no_call",
        result="no call, and why", apis=("chat", "responses", "messages"),
        intent=call_write_file, output=truncate_write_file,
        reports="QwenLM/qwen-code#2021 ahwurm/localharness#77 can1357/oh-my-pi#1786",
    ),
    BadServer(
        "cuts_the_prompt", "context_cut", "an answer as if there were no tools", right="warned",
        scene="long_prompt", modes=("whole",),
        result="the same, and a warning that the server read 2051 tokens of many more", apis=("chat", "ollama"),
        output=lambda output, question: Output(text="I have no tools."), damage=reduce_prompt_tokens,
        reports="ollama/ollama#18107 ollama/ollama#7987 haoxiang-xu/PuPu#129",
    ),
]  # fmt: skip
