"""The guard around a custom loop: `python guarded_loop.py MODEL QUESTION`, the server in OPENAI_BASE_URL."""

import sys

from openai import OpenAI

from rightcall import Guard, Toolset, dispatch_sync, read, tool
from rightcall.guard import Turn, required_steps


@tool(read_only=True)
def get_weather(city: str, days: int = 1) -> str:
    """The weather of the next days."""
    return f"{days} days of sun in {city}"


TOOLS = Toolset(get_weather)
GUARD = Guard.of("full").with_policies(required_steps("get_weather"))


def ask(client: OpenAI, model: str, question: str) -> str:
    messages = [{"role": "user", "content": question}]
    while True:
        sent = GUARD.prepare(Turn.of(messages, TOOLS))
        response = client.chat.completions.create(model=model, messages=sent, tools=TOOLS.definitions("chat"))
        judged = GUARD.judge(Turn.of(messages, TOOLS, reply=read(response, tools=TOOLS)))
        results = dispatch_sync(judged.calls, TOOLS)
        messages += judged.messages(results)
        if judged.over(results):
            return judged.answer or judged.reason


if __name__ == "__main__":
    print(ask(OpenAI(), *sys.argv[1:]))
