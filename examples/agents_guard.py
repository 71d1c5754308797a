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
            reply = read(items, api="responses", tools=self._tools)
            judged = self._guard.judge(Turn.of(talk, self._tools, reply=reply, api="responses"))
            if judged.decision == "stop":
                response.output[:] = [_message(judged.reason)]
            if judged.decision != "again":
                return response
            talk += [*items, *judged.messages(api="responses")[len(reply.message("responses")) :]]

    def stream_response(self, *given: Any, **more: Any) -> Any:
        return self._wrapped.stream_response(*given, **more)


def _message(said: str) -> ResponseOutputMessage:
    text = ResponseOutputText(type="output_text", text=said, annotations=[])
    return ResponseOutputMessage(id="guard", type="message", role="assistant", status="completed", content=[text])
