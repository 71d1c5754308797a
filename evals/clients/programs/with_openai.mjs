// openai for JavaScript: its runner of tools over Chat Completions, streamed; and a loop over Responses.
import OpenAI from "openai";
import { BASE, HOW, MODEL, MOST_TURNS, TASK, TOOLS } from "./file_tools.mjs";

const client = new OpenAI({ baseURL: `${BASE}/v1`, apiKey: "none", maxRetries: 1 });

async function chat() {
  const tools = Object.entries(TOOLS).map(([name, { schema, run }]) => ({
    type: "function",
    function: { name, parameters: schema, parse: JSON.parse, function: run },
  }));
  const messages = [{ role: "user", content: TASK }];
  const runner = client.chat.completions.runTools(
    { model: MODEL, stream: true, messages, tools },
    { maxChatCompletions: MOST_TURNS },
  );
  return runner.finalContent();
}

async function responses() {
  const tools = Object.entries(TOOLS).map(([name, { schema }]) => ({
    type: "function", name, parameters: schema, strict: true,
  }));
  const input = [{ role: "user", content: TASK }];
  for (let turn = 0; turn < MOST_TURNS; turn++) {
    const said = await client.responses.stream({ model: MODEL, input, tools, store: false }).finalResponse();
    const calls = said.output.filter((item) => item.type === "function_call");
    if (!calls.length) return said.output_text;
    input.push(...said.output.map(({ parsed_arguments, ...item }) => item));
    for (const call of calls) {
      const output = TOOLS[call.name].run(JSON.parse(call.arguments));
      input.push({ type: "function_call_output", call_id: call.call_id, output });
    }
  }
}

console.log(await { chat, responses }[HOW]());
