// ollama for JavaScript: the loop of its guide, streamed.
import { Ollama } from "ollama";
import { BASE, MODEL, MOST_TURNS, TASK, TOOLS } from "./file_tools.mjs";

const client = new Ollama({ host: BASE });
const tools = Object.entries(TOOLS).map(([name, { schema }]) => ({
  type: "function", function: { name, description: name, parameters: schema },
}));
const messages = [{ role: "user", content: TASK }];
for (let turn = 0; turn < MOST_TURNS; turn++) {
  let content = "";
  const calls = [];
  for await (const part of await client.chat({ model: MODEL, messages, tools, stream: true })) {
    content += part.message.content ?? "";
    calls.push(...(part.message.tool_calls ?? []));
  }
  messages.push({ role: "assistant", content, tool_calls: calls });
  if (!calls.length) {
    console.log(content);
    break;
  }
  for (const { function: { name, arguments: given } } of calls)
    messages.push({ role: "tool", tool_name: name, content: TOOLS[name].run(given) });
}
