"""The guard as a node of a LangGraph loop: `python langgraph_guard.py MODEL QUESTION`, server in OPENAI_BASE_URL."""

import operator
import sys
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from openai import OpenAI

from rightcall import Guard, Toolset, dispatch_sync, read, tool
from rightcall.guard import Turn, required_steps


@tool(read_only=True)
def get_weather(city: str, days: int = 1) -> str:
    """The weather of the next days."""
    return f"{days} days of sun in {city}"


TOOLS = Toolset(get_weather)
GUARD = Guard.of("full").with_policies(required_steps("get_weather"))


class State(TypedDict):
    messages: Annotated[list[dict[str, Any]], operator.add]
    response: Any
    answer: str


def graph(client: OpenAI, model: str) -> Any:
    def ask(state: State) -> dict[str, Any]:
        sent = GUARD.prepare(Turn.of(state["messages"], TOOLS))
        return {"response": client.chat.completions.create(model=model, messages=sent, tools=TOOLS.definitions("chat"))}

    def act(state: State) -> dict[str, Any]:
        judged = GUARD.judge(Turn.of(state["messages"], TOOLS, reply=read(state["response"], tools=TOOLS)))
        results = dispatch_sync(judged.calls, TOOLS)
        answer = (judged.answer or judged.reason) if judged.over(results) else ""
        return {"messages": judged.messages(results), "answer": answer}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_node("act", act)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "act")
    builder.add_conditional_edges("act", lambda state: END if state["answer"] else "ask")
    return builder.compile()


def ask(client: OpenAI, model: str, question: str) -> str:
    state = {"messages": [{"role": "user", "content": question}], "answer": ""}
    return str(graph(client, model).invoke(state)["answer"])


if __name__ == "__main__":
    print(ask(OpenAI(), *sys.argv[1:]))
