"""The guard in the loops of other frameworks, with the real packages if they are installed."""

import asyncio
from typing import Any

import openai
import pytest

from rightcall import Guard, Toolset, tool
from rightcall.guard import required_steps
from support.scripted_server import scripted
from test_examples import TOLD, chat_turn, example


def test_a_langgraph_loop_with_the_guard_completes_the_task() -> None:
    pytest.importorskip("langgraph")
    with scripted(chat_turn) as (url, requests):
        client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
        answer = example("langgraph_guard").ask(client, "m", "Weather?")
    assert answer.startswith(TOLD) and "[guard: problems]" in answer and len(requests) == 3


@tool(read_only=True)
def get_weather(city: str) -> str:
    """The weather of today."""
    return f"sun in {city}"


def test_a_pydantic_ai_model_is_nudged_until_it_makes_its_call() -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    message_types = pytest.importorskip("pydantic_ai.messages")
    function = pytest.importorskip("pydantic_ai.models.function")
    seen: list[Any] = []

    def model(messages: list[Any], info: Any) -> Any:
        last = messages[-1].parts[-1]
        seen.append(str(getattr(last, "content", "")))
        if last.part_kind == "tool-return" and last.content == "sun in Oslo":
            return message_types.ModelResponse(parts=[message_types.TextPart("It is sunny.")])
        if len(seen) == 1:
            return message_types.ModelResponse(parts=[message_types.TextPart("It rains, I guess.")])
        name = "weather_now" if len(seen) == 2 else "get_weather"
        return message_types.ModelResponse(parts=[message_types.ToolCallPart(name, {"city": "Oslo"}, f"c{len(seen)}")])

    def weather(city: str) -> str:
        return f"sun in {city}"

    guarded = example("pydantic_ai_guard").GuardedModel(
        function.FunctionModel(model),
        Guard.of("full").with_policies(required_steps("get_weather")),
        Toolset(get_weather),
    )
    agent = pydantic_ai.Agent(guarded, tools=[pydantic_ai.Tool(weather, name="get_weather")])
    assert asyncio.run(agent.run("Weather in Oslo?")).output == "It is sunny."
    assert seen[1].startswith("[guard: required_steps]") and "[guard: unknown_tool]" in seen[2] and len(seen) == 4


def test_an_openai_agents_model_is_nudged_until_it_makes_its_call() -> None:
    agents = pytest.importorskip("agents")
    from openai.types.responses import ResponseFunctionToolCall

    module = example("agents_guard")
    seen: list[Any] = []

    class Scripted(agents.Model):  # type: ignore[misc,name-defined]
        async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **more: Any) -> Any:
            last = input[-1]
            seen.append(str(last.get("output") or last.get("content")))
            if seen[-1] == "sun in Oslo":
                output = module._message("It is sunny.")
            elif len(seen) == 1:
                output = module._message("It rains, I guess.")
            else:
                name = "weather_now" if len(seen) == 2 else "get_weather"
                output = ResponseFunctionToolCall(
                    type="function_call", call_id=f"c{len(seen)}", name=name, arguments='{"city": "Oslo"}'
                )
            return agents.ModelResponse(output=[output], usage=agents.Usage(), response_id=None)

        def stream_response(self, *given: Any, **more: Any) -> Any:
            raise NotImplementedError

    def weather(city: str) -> str:
        return f"sun in {city}"

    guard = Guard.of("full").with_policies(required_steps("get_weather"))
    agent = agents.Agent(
        name="a",
        model=module.GuardedModel(Scripted(), guard, Toolset(get_weather)),
        tools=[agents.function_tool(weather, name_override="get_weather")],
    )
    agents.set_tracing_disabled(True)
    assert asyncio.run(agents.Runner.run(agent, "Weather in Oslo?")).final_output == "It is sunny."
    assert seen[1].startswith("[guard: required_steps]") and "[guard: unknown_tool]" in seen[2] and len(seen) == 4
