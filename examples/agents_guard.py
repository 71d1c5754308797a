"""The guard around a model of openai-agents: `Agent(..., model=GuardedModel(model, GUARD, tools))`.

What the guard has to say is said to the model before the agent sees the reply: a refused call, an answer that comes too
early. Calls that pass are run by the agent, as always. Streams are not judged.
"""

from typing import Any

from agents import Model, ModelResponse
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from rightcall import Guard, Toolset, read
from rightcall.guard import Turn


class GuardedModel(Model):
    def __init__(self, wrapped: Model, guard: Guard, tools: Toolset) -> None:
        self._wrapped, self._guard, self._tools = wrapped, guard, tools

    async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **more: Any) -> ModelResponse:
        talk = [{"role": "user", "content": input}] if isinstance(input, str) else list(input)
        while True:
            response = await self._wrapped.get_response(system_instructions, talk, *rest, **more)
            items = response.to_input_items()
            reply = read({"choices": [{"message": _history(items)[-1]}]}, tools=self._tools)
            judged = self._guard.judge(Turn.of(_history(talk), self._tools, reply=reply))
            if judged.decision == "stop":
                response.output[:] = [_message(judged.reason)]
            if judged.decision != "again":
                return response
            told = [message for message in judged.messages() if message["role"] != "assistant"]
            talk += [*items, *[_item(message) for message in told]]

    def stream_response(self, *given: Any, **more: Any) -> Any:
        return self._wrapped.stream_response(*given, **more)


def _history(items: list[Any]) -> list[dict[str, Any]]:
    """As much of the history as the guard reads, in the shape of OpenAI's Chat."""
    found: list[dict[str, Any]] = []
    for item in items:
        kind, role = item.get("type", "message"), item.get("role")
        if kind == "function_call":
            function = {"name": item["name"], "arguments": item["arguments"]}
            call = {"id": item["call_id"], "type": "function", "function": function}
            if not found or found[-1]["role"] != "assistant":
                found.append({"role": "assistant", "content": ""})
            found[-1].setdefault("tool_calls", []).append(call)
        elif kind == "function_call_output":
            found.append({"role": "tool", "tool_call_id": item["call_id"], "content": str(item["output"])})
        elif kind == "message" and role in ("user", "assistant", "system", "developer"):
            found.append({"role": role, "content": item["content"]})
    return found or [{"role": "assistant", "content": ""}]


def _item(message: dict[str, Any]) -> dict[str, Any]:
    if message["role"] == "user":
        return message
    return {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}


def _message(said: str) -> ResponseOutputMessage:
    text = ResponseOutputText(type="output_text", text=said, annotations=[])
    return ResponseOutputMessage(id="guard", type="message", role="assistant", status="completed", content=[text])
