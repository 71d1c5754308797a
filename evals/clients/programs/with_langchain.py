"""LangChain: an agent of its own, streamed, over four dialects."""

from __future__ import annotations

from typing import Any

from file_tools import BASE, HOW, MODEL, TASK, edit_file, read_file
from langchain.agents import create_agent


def model() -> Any:
    if HOW == "messages":
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(model=MODEL, base_url=BASE, api_key="none", max_retries=1)
    if HOW == "ollama":
        from langchain_ollama import ChatOllama

        return ChatOllama(model=MODEL, base_url=BASE)
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        model=MODEL, base_url=f"{BASE}/v1", api_key="none", max_retries=1, use_responses_api=HOW == "responses"
    )


agent = create_agent(model(), tools=[read_file, edit_file])
text = ""
for chunk, _ in agent.stream({"messages": [{"role": "user", "content": TASK}]}, stream_mode="messages"):
    if chunk.type in ("AIMessageChunk", "ai"):
        text += chunk.text if isinstance(chunk.text, str) else chunk.text()
print(text)
