"""The guard around a model of pydantic-ai: `Agent(GuardedModel(model, GUARD, tools), tools=[...])`.

The guard sends its feedback to the model before the agent sees the reply: for a rejected call, or an answer that comes
too early. The agent runs the calls that pass, as usual.
"""

from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.wrapper import WrapperModel

from rightcall import Guard, Toolset, read
from rightcall.guard import Turn


class GuardedModel(WrapperModel):
    def __init__(self, wrapped: Any, guard: Guard, tools: Toolset) -> None:
        super().__init__(wrapped)
        self._guard, self._tools = guard, tools

    async def request(self, messages: list[ModelMessage], *settings: Any) -> ModelResponse:
        history = list(messages)
        while True:
            response = await super().request(history, *settings)
            reply = read({"choices": [{"message": _turn(response)}]}, tools=self._tools)
            judged = self._guard.judge(Turn.of(_history(history), self._tools, reply=reply))
            if judged.decision == "stop":
                return ModelResponse(parts=[TextPart(judged.reason)])
            if judged.decision != "again":
                return response
            feedback = [message for message in judged.messages() if message["role"] != "assistant"]
            history += [response, ModelRequest(parts=[_part(message, response) for message in feedback])]


def _turn(response: ModelResponse) -> dict[str, Any]:
    text = "".join([part.content for part in response.parts if isinstance(part, TextPart)])
    calls = [
        {"id": p.tool_call_id, "type": "function", "function": {"name": p.tool_name, "arguments": p.args_as_json_str()}}
        for p in response.parts
        if isinstance(p, ToolCallPart)
    ]
    return {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}


def _history(messages: list[ModelMessage]) -> list[dict[str, Any]]:
    """Return the part of the history that the guard reads, as OpenAI Chat messages."""
    found: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            found.append(_turn(message))
            continue
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                found.append({"role": "user", "content": str(part.content)})
            elif part.part_kind in ("tool-return", "retry-prompt"):
                content = part.model_response_str() if isinstance(part, ToolReturnPart) else f"ERROR: {part.content}"
                found.append({"role": "tool", "tool_call_id": part.tool_call_id, "content": content})
    return found


def _part(message: dict[str, Any], response: ModelResponse) -> Any:
    if message["role"] == "user":
        return UserPromptPart(message["content"])
    names = {part.tool_call_id: part.tool_name for part in response.parts if isinstance(part, ToolCallPart)}
    id = message["tool_call_id"]
    return ToolReturnPart(names[id], message["content"], id)
