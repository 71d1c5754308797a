"""The guard around a model of openai-agents: `Agent(..., model=GuardedModel(model, GUARD, tools))`.

The guard sends its feedback to the model before the agent sees the reply: for a rejected call, or an answer that comes
too early. The agent runs the calls that pass, as usual. The guard does not check streams.
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
        history = [{"role": "user", "content": input}] if isinstance(input, str) else list(input)
        while True:
            response = await self._wrapped.get_response(system_instructions, history, *rest, **more)
            items = response.to_input_items()
            reply = read(items, api="responses", tools=self._tools)
            judged = self._guard.judge(Turn.of(history, self._tools, reply=reply, api="responses"))
            if judged.decision == "stop":
                response.output[:] = [_message(judged.reason)]
            if judged.decision != "again":
                return response
            history += [*items, *judged.messages(api="responses")[len(reply.message("responses")) :]]

    def stream_response(self, *args: Any, **more: Any) -> Any:
        return self._wrapped.stream_response(*args, **more)


def _message(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(id="guard", type="message", role="assistant", status="completed", content=[part])
