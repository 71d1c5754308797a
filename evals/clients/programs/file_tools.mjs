// What the programs beside this one share: the two tools of the task, where the server is, and what is asked.
import fs from "node:fs";

export const { BASE, MODEL, TASK } = process.env;
export const HOW = process.argv[2];
export const MOST_TURNS = 6;

const schema = (...names) => ({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
  required: names,
  additionalProperties: false,
});

export const TOOLS = {
  read_file: { schema: schema("path"), run: ({ path }) => fs.readFileSync(path, "utf8") },
  edit_file: {
    schema: schema("path", "old", "new"),
    run: ({ path, old, new: word }) => {
      fs.writeFileSync(path, fs.readFileSync(path, "utf8").replaceAll(old, word));
      return "changed";
    },
  },
};
