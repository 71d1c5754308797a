// LangChain for JavaScript: an agent of its own.
import { createAgent, tool } from "langchain";
import { ChatOpenAI } from "@langchain/openai";
import { BASE, HOW, MODEL, TASK, TOOLS } from "./file_tools.mjs";

const model = new ChatOpenAI({
  model: MODEL, apiKey: "none", maxRetries: 1, streamUsage: false, useResponsesApi: HOW === "responses",
  configuration: { baseURL: `${BASE}/v1` },
});
const tools = Object.entries(TOOLS).map(([name, { schema, run }]) =>
  tool(async (given) => run(given), { name, description: name, schema }),
);
const done = await createAgent({ model, tools }).invoke({ messages: [{ role: "user", content: TASK }] });
console.log(done.messages.at(-1).text);
