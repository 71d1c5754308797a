"""openai-agents: its own loop, streamed, over Chat Completions and Responses."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from file_tools import BASE, HOW, MODEL, TASK, edit_file, read_file
from openai import AsyncOpenAI

set_tracing_disabled(True)


async def main() -> None:
    server = AsyncOpenAI(base_url=f"{BASE}/v1", api_key="none", max_retries=1)
    kinds: dict[str, Any] = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}
    model = kinds[HOW](model=MODEL, openai_client=server)
    agent = Agent(name="editor", model=model, tools=[function_tool(read_file), function_tool(edit_file)])
    result = Runner.run_streamed(agent, TASK)
    async for _ in result.stream_events():
        pass
    print(result.final_output)


asyncio.run(main())
