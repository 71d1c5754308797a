"""LiteLLM's SDK: one loop, streamed, over two dialects."""

from __future__ import annotations

from typing import Any

import litellm
from file_tools import BASE, HOW, MODEL, MOST_TURNS, SCHEMAS, TASK, run

SETTINGS = {
    "chat": {"model": f"openai/{MODEL}", "api_base": f"{BASE}/v1"},
    "messages": {"model": f"anthropic/{MODEL}", "api_base": BASE},
    "ollama": {"model": f"ollama_chat/{MODEL}", "api_base": BASE},
}[HOW]
TOOLS = [{"type": "function", "function": {"name": n, "parameters": s}} for n, s in SCHEMAS.items()]
MESSAGES: list[Any] = [{"role": "user", "content": TASK}]
for _ in range(MOST_TURNS):
    chunks = list(
        litellm.completion(**SETTINGS, api_key="none", messages=MESSAGES, tools=TOOLS, stream=True, num_retries=1)
    )
    message: Any = litellm.stream_chunk_builder(chunks, messages=MESSAGES).choices[0].message
    if not message.tool_calls:
        print(message.content)
        break
    MESSAGES.append(message.model_dump())
    for call in message.tool_calls:
        result = run(call.function.name, call.function.arguments)
        MESSAGES.append({"role": "tool", "tool_call_id": call.id, "content": result})
