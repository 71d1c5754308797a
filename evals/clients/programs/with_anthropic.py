"""anthropic for Python: its stream, and its tool runner, which keeps the conversation itself."""

from __future__ import annotations

from typing import Any

import anthropic
from file_tools import BASE, HOW, MODEL, MOST_TURNS, SCHEMAS, TASK, edit_file, read_file, run

CLIENT = anthropic.Anthropic(base_url=BASE, api_key="none", max_retries=1)


def stream() -> str:
    tools: Any = [{"name": name, "input_schema": schema} for name, schema in SCHEMAS.items()]
    messages: list[Any] = [{"role": "user", "content": TASK}]
    for _ in range(MOST_TURNS):
        with CLIENT.messages.stream(model=MODEL, max_tokens=1000, messages=messages, tools=tools) as response_stream:
            message = response_stream.get_final_message()
        if message.stop_reason != "tool_use":
            return "".join([block.text for block in message.content if block.type == "text"])
        messages.append({"role": "assistant", "content": message.content})
        results = [(block.id, run(block.name, block.input)) for block in message.content if block.type == "tool_use"]
        blocks = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, text in results]
        messages.append({"role": "user", "content": blocks})
    return ""


def runner() -> str:
    tools: Any = [anthropic.beta_tool(read_file), anthropic.beta_tool(edit_file)]
    messages: Any = [{"role": "user", "content": TASK}]
    runner = CLIENT.beta.messages.tool_runner(
        model=MODEL, max_tokens=1000, messages=messages, tools=tools, max_iterations=MOST_TURNS
    )
    return "".join([block.text for block in runner.until_done().content if block.type == "text"])


print({"stream": stream, "runner": runner}[HOW]())
