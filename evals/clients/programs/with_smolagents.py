"""smolagents: its agent with tools, streamed. It requires the answer as a call of `final_answer`."""

from __future__ import annotations

from file_tools import BASE, MODEL, MOST_TURNS, TASK, edit_file, read_file
from smolagents import OpenAIServerModel, ToolCallingAgent, tool

model = OpenAIServerModel(model_id=MODEL, api_base=f"{BASE}/v1", api_key="none")
agent = ToolCallingAgent(
    tools=[tool(read_file), tool(edit_file)], model=model, stream_outputs=True, max_steps=MOST_TURNS
)
print(agent.run(TASK))
