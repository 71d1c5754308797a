"""A whole loop with `Backend`, for any server: `python backend_loop.py http://localhost:8080/v1 MODEL QUESTION`."""

import sys

from rightcall import Toolset, answers, dispatch_sync, tool
from rightcall.backends import Backend, Request


@tool
def get_weather(city: str, days: int = 1) -> str:
    """The weather of the next days."""
    return f"{days} days of sun in {city}"


TOOLS = Toolset(get_weather)


def ask(backend: Backend, question: str) -> str:
    messages = [{"role": "user", "content": question}]
    for _ in range(9):
        reply = backend.complete_sync(Request(messages=messages, tools=TOOLS))
        messages += [reply.message(), *(new := answers(reply, dispatch_sync(reply, TOOLS)))]
        if not new:
            break
    return reply.content


if __name__ == "__main__":
    print(ask(Backend(sys.argv[1], model=sys.argv[2]), sys.argv[3]))
