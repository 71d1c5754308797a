// @google/genai: the loop of its guide, streamed.
import { GoogleGenAI } from "@google/genai";
import { BASE, MODEL, MOST_TURNS, TASK, TOOLS } from "./file_tools.mjs";

const client = new GoogleGenAI({ apiKey: "none", httpOptions: { baseUrl: BASE } });
const functionDeclarations = Object.entries(TOOLS).map(([name, { schema }]) => ({
  name, description: name, parametersJsonSchema: schema,
}));
const contents = [{ role: "user", parts: [{ text: TASK }] }];
for (let turn = 0; turn < MOST_TURNS; turn++) {
  const parts = [];
  const config = { tools: [{ functionDeclarations }] };
  for await (const chunk of await client.models.generateContentStream({ model: MODEL, contents, config }))
    parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []));
  const calls = parts.filter((part) => part.functionCall).map((part) => part.functionCall);
  contents.push({ role: "model", parts });
  if (!calls.length) {
    console.log(parts.map((part) => part.text ?? "").join(""));
    break;
  }
  const results = calls.map(({ id, name, args }) => ({
    functionResponse: { id, name, response: { output: TOOLS[name].run(args) } },
  }));
  contents.push({ role: "user", parts: results });
}
