// @anthropic-ai/sdk: its runner of tools, streamed, which keeps the conversation itself.
import Anthropic from "@anthropic-ai/sdk";
import { BASE, MODEL, MOST_TURNS, TASK, TOOLS } from "./file_tools.mjs";

const client = new Anthropic({ baseURL: BASE, apiKey: "none", maxRetries: 1 });
const tools = Object.entries(TOOLS).map(([name, { schema, run }]) => ({
  name, description: name, input_schema: schema, run: async (given) => run(given), parse: (given) => given,
}));
const runner = client.beta.messages.toolRunner({
  model: MODEL, max_tokens: 1000, stream: true, max_iterations: MOST_TURNS, tools,
  messages: [{ role: "user", content: TASK }],
});
let last;
for await (const stream of runner) last = await stream.finalMessage();
console.log(last.content.map((block) => block.text ?? "").join(""));
