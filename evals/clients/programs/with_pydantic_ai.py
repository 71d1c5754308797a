"""pydantic-ai: its own loop, streamed, over three dialects. It treats the first text as the answer."""

from __future__ import annotations

import asyncio
from typing import Any

from file_tools import BASE, HOW, MODEL, TASK, edit_file, read_file
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider


def model() -> Any:
    if HOW == "messages":
        return AnthropicModel(MODEL, provider=AnthropicProvider(base_url=BASE, api_key="none"))
    kinds: dict[str, Any] = {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}
    return kinds[HOW](MODEL, provider=OpenAIProvider(base_url=f"{BASE}/v1", api_key="none"))


async def main() -> None:
    agent = Agent(model(), tools=[read_file, edit_file])
    async with agent.run_stream(TASK) as result:
        print(await result.get_output())


asyncio.run(main())
