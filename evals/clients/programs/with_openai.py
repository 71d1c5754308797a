"""openai for Python: the loop of its guides, over Chat Completions and Responses, with its streaming helpers."""

from __future__ import annotations

from typing import Any

import openai
from file_tools import BASE, HOW, MODEL, MOST_TURNS, SCHEMAS, TASK, run

CLIENT = openai.OpenAI(base_url=f"{BASE}/v1", api_key="none", max_retries=1)


def chat() -> str:
    tools: Any = [{"type": "function", "function": {"name": n, "parameters": s}} for n, s in SCHEMAS.items()]
    messages: list[Any] = [{"role": "user", "content": TASK}]
    for _ in range(MOST_TURNS):
        with CLIENT.chat.completions.stream(model=MODEL, messages=messages, tools=tools) as stream:
            message = stream.get_final_completion().choices[0].message
        if not message.tool_calls:
            return message.content or ""
        messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
        for call in message.tool_calls:
            result = run(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return ""


def chat_whole() -> str:
    tools: Any = [{"type": "function", "function": {"name": n, "parameters": s}} for n, s in SCHEMAS.items()]
    messages: list[Any] = [{"role": "user", "content": TASK}]
    for _ in range(MOST_TURNS):
        message = CLIENT.chat.completions.create(model=MODEL, messages=messages, tools=tools).choices[0].message
        if not message.tool_calls:
            return message.content or ""
        messages.append(message)
        for call in message.tool_calls:
            result = run(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return ""


def responses() -> str:
    tools: Any = [{"type": "function", "name": n, "parameters": s, "strict": True} for n, s in SCHEMAS.items()]
    items: list[Any] = [{"role": "user", "content": TASK}]
    for _ in range(MOST_TURNS):
        with CLIENT.responses.stream(model=MODEL, input=items, tools=tools, store=False) as stream:
            message = stream.get_final_response()
        calls = [item for item in message.output if item.type == "function_call"]
        if not calls:
            return message.output_text
        items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in message.output]
        for call in calls:
            result = run(call.name, call.arguments)
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
    return ""


print({"chat": chat, "whole": chat_whole, "responses": responses}[HOW]())
