// Vercel's AI SDK: its own loop, streamed. It checks every event against a schema.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import * as ai from "ai";
import { BASE, HOW, MODEL, MOST_TURNS, TASK, TOOLS } from "./file_tools.mjs";

const where = { name: "rc", baseURL: `${BASE}/v1`, apiKey: "none" };
const model = {
  compatible: () => createOpenAICompatible(where)(MODEL),
  chat: () => createOpenAI(where).chat(MODEL),
  responses: () => createOpenAI(where).responses(MODEL),
  messages: () => createAnthropic(where)(MODEL),
}[HOW]();
const tools = Object.fromEntries(
  Object.entries(TOOLS).map(([name, { schema, run }]) => [
    name,
    ai.tool({ description: name, inputSchema: ai.jsonSchema(schema), execute: async (given) => run(given) }),
  ]),
);
let failed;
const asked = ai.streamText({
  model, tools, prompt: TASK, maxRetries: 1,
  stopWhen: (ai.isStepCount ?? ai.stepCountIs)(MOST_TURNS),
  onError: ({ error }) => { failed = error; },
});
let text = "";
for await (const part of asked.fullStream) if (part.type === "text-delta") text += part.text ?? "";
console.log(text);
if (failed) {
  console.error(String(failed));
  process.exit(1);
}
