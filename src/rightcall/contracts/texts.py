"""What the contract says in words. One text per section; `prompt` decides which of them a prompt has."""

from __future__ import annotations

TITLE = "## Tool Calling Contract"
MODE = "The active mode is `{mode}`. This section replaces anything said about calling tools earlier in the prompt."

NATIVE = """\
Call tools through the tool channel of this API: it is preferred. Should the server take that channel away, write a
call as text, and it runs just the same:

{example}"""
CALL = "<tool_call>name({ key: value })</tool_call>"

PROTOCOL = """\
### Response protocol

A response consists of the blocks below and of white space between them. Nothing else is read.

- `<tool_call>` holds exactly one call, written `name({ key: value })`.
- `<assistant_prose>` holds a short remark for the log. It is optional.
- `<user_response>` holds the answer for the user.
- `<done>DONE_MARK</done>` says that the whole task is finished.

Rules:

- Text outside these blocks is refused, and you are told so. Do not begin a call with a label such as `tool_code:`,
  `python:` or `shell:`, and put no Markdown fence around it.
- A call is written bare: no quotes around it, no JSON object in its place. One block per call; several blocks may
  follow one another. A name that is declared in quotes is called without them.
- Arguments are one object literal. Keys are identifiers or strings; values are strings, numbers, `true`, `false`,
  `null`, arrays and objects.
- Text of several lines goes into a heredoc: `<<TAG`, a line break, the text exactly as it is, without escapes, then
  TAG at the start of a line; commas and brackets may follow it there.
- Prose is brief. Code and file contents belong into the arguments of a call.
- Rather call a tool than describe what you would do.
- Say done only after a tool call has shown that the task is finished."""

EXAMPLE = "A call looks like this:\n\n{example}"
HEREDOC = "Text of several lines, as a heredoc:\n\n{example}"
HEREDOC_ANY = "Text of several lines, as a heredoc, if there were a tool `create`:\n\n{example}"
LINES = '<<EOF\n# Today\nIt\'s "raw": \\n stays as it is.\nEOF'

LEDGER = """\
### Task ledger

Every turn shows a `<task_ledger>` with the deliverables of the task. A `<done>` is refused while one of them is open
or blocked. Keep it true:

- `ledger({ action: "add", text: "..." })` adds a deliverable; its id comes back.
- `ledger({ action: "mark", id: "deliverable-1", status: "done" })` once a tool result has shown that it is done.
- `ledger({ action: "mark", id: "deliverable-1", status: "dropped", note: "why" })` for one that is not needed any more.
- `ledger({ action: "rationale", text: "..." })` records why you go about it this way.
- `ledger({ action: "note", text: "..." })` records something you found out.

Use only ids that the ledger shows."""

LEDGER_PLAIN = """\
### Task ledger

Every turn shows a `<task_ledger>` with the deliverables of the task. The task is not done while one of them is open or
blocked. Call the tool `ledger` to add deliverables, to mark one done once a tool result has shown it, or dropped with a
note that says why. Use only ids that the ledger shows."""

ACTION = """\
### Act first

This turn is action-gated. Begin your response with a tool call: no prose, code, diff, JSON or done before it."""

EXAMPLES = "## Tool call examples"
TYPES = "## Shared types"
TOOLS = "## Available tools"
NAMES = "## Tool names"
COMPACT = "## Other tools (call directly, or call `{lookup}` for details)"
NAMED = "## More tools (call `{lookup}` first: it shows the arguments)"

WIRE = """\
### How to call a tool

Write calls exactly in the form of the example, with the names and arguments that the tools declare. Leave out what you
do not need, and never make up a tool or an argument. If no tool helps, answer in plain text."""

WIRE_ONE = "One call:\n\n{example}"
WIRE_TWO = "Two calls in one response:\n\n{example}"
