"""ollama for Python: the loop of its guide, streamed."""

from __future__ import annotations

from typing import Any

import ollama
from file_tools import BASE, MODEL, MOST_TURNS, TASK, edit_file, read_file, run

CLIENT = ollama.Client(host=BASE)
MESSAGES: list[Any] = [{"role": "user", "content": TASK}]
for _ in range(MOST_TURNS):
    text, calls = "", []
    for part in CLIENT.chat(model=MODEL, messages=MESSAGES, tools=[read_file, edit_file], stream=True):
        text += part.message.content or ""
        calls += part.message.tool_calls or []
    if not calls:
        print(text)
        break
    MESSAGES.append({"role": "assistant", "content": text, "tool_calls": calls})
    for call in calls:
        result = run(call.function.name, dict(call.function.arguments))
        MESSAGES.append({"role": "tool", "tool_name": call.function.name, "content": result})
