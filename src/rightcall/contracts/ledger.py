"""The task ledger: what must be delivered, and the gate that keeps "done" honest.

    ledger = Ledger("Fix the parser")
    tools = Toolset([*tools, ledger.tool()])     # the model keeps it, with a tool like any other
    ledger.text()                                # <task_ledger> ..., for the next turn; "" while it is empty
    ledger.refusal()                             # None, or the problem to answer `<done>` with

The state is plain data: `to_json` and `from_json` carry it over a restart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import msgspec

from rightcall.contracts.typescript import Harmless
from rightcall.errors import CallerError, ToolError
from rightcall.types import Json, Problem, Tool

Status = Literal["open", "done", "blocked", "dropped"]
STATUSES: tuple[Status, ...] = get_args(Status)

MAX_TEXT = 2_000  # characters of one text
MAX_ITEMS = 256
MAX_OBSERVATIONS = 256
SHOWN = 5  # observations in the prompt
_HARMLESS = Harmless()


class Deliverable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that must be delivered. `id` names it, `text` says what it is, `status` is "open", "done", "blocked" or
    "dropped", and `note` why."""

    id: str
    text: str
    status: Status = "open"
    note: str = ""


class LedgerState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A ledger as plain data.

    - `root_task`: what it is all about.
    - `deliverables`: in the order they were added.
    - `rationale`: why it is done in this way.
    - `observations`: what was noted on the way; the last few are shown.
    """

    root_task: str = ""
    deliverables: tuple[Deliverable, ...] = ()
    rationale: str = ""
    observations: tuple[str, ...] = ()


class Ledger:
    """What must be delivered, and the gate that keeps "done" honest: the model keeps it with a tool like any other.
    Holds one `LedgerState`, which each action replaces. What a model asks for wrongly raises `ToolError`.

    - `root_task`: what it is all about, shown on top.
    - `state`: where to go on from, instead of an empty ledger.
    """

    def __init__(self, root_task: str = "", state: LedgerState | None = None) -> None:
        self.state = LedgerState(root_task) if state is None else state

    def to_json(self) -> str:
        """The state as JSON text, for `from_json` after a restart."""
        return msgspec.json.encode(self.state).decode()

    @classmethod
    def from_json(cls, text: str) -> Ledger:
        """The ledger that `to_json` wrote as `text`. Raises `CallerError` for anything else."""
        try:
            return cls(state=msgspec.json.decode(text, type=LedgerState))
        except msgspec.DecodeError as error:
            raise CallerError(f"this is no ledger: {error}; pass what Ledger.to_json gave") from None

    # -- what the model does -------------------------------------------------------------------------------------------

    def add(self, text: str, id: str = "") -> str:
        """A new deliverable with this `text`; gives its id, which is made unless `id` is given."""
        known = {item.id for item in self.state.deliverables}
        if len(known) >= MAX_ITEMS:
            raise ToolError(f"the ledger is full: {MAX_ITEMS} deliverables; mark some done or dropped, and go on")
        id = id.strip() or self._fresh(known)
        if id in known:
            raise ToolError(f"there is a deliverable {_short(id)} already; leave the id out, or choose another")
        self._set(deliverables=(*self.state.deliverables, Deliverable(_line(id, "id"), _line(text, "text"))))
        return id

    def mark(self, id: str, status: str, note: str = "") -> str:
        """Gives the deliverable of this `id` another `status`; a blocked and a dropped one need a `note`."""
        ids = [item.id for item in self.state.deliverables]
        if id not in ids:
            raise ToolError(f"there is no deliverable {_short(id)}; the ids are: {', '.join(ids) or 'none yet'}")
        found = next((known for known in STATUSES if known == status), None)
        if found is None:
            raise ToolError(f"there is no status {_short(status)}; use one of: {', '.join(STATUSES)}")
        if found in ("blocked", "dropped") and not note.strip():
            raise ToolError(f"a deliverable that is {found} needs a note that says why; send note too")
        said = {"note": _line(note, "note")} if note.strip() else {}
        marked = [*self.state.deliverables]
        at = ids.index(id)
        marked[at] = msgspec.structs.replace(marked[at], status=found, **said)
        self._set(deliverables=tuple(marked))
        return f"{id} is {found}"

    def rationale(self, text: str) -> str:
        """Replaces the rationale by this `text`."""
        self._set(rationale=_line(text, "text"))
        return "recorded"

    def note(self, text: str) -> str:
        """Adds this `text` to the observations."""
        self._set(observations=(*self.state.observations, _line(text, "text"))[-MAX_OBSERVATIONS:])
        return "recorded"

    def seed_plan(self, items: list[str]) -> str:
        """The whole plan at once, a deliverable for each of `items`, while there is nothing yet."""
        if self.state.deliverables:
            raise ToolError("the ledger has deliverables already; add further ones one by one")
        if not items or len(items) > MAX_ITEMS:
            raise ToolError(f"a plan has 1 to {MAX_ITEMS} items; send them as a list of texts")
        texts = [_line(item, f"items[{at}]") for at, item in enumerate(items)]
        self._set(deliverables=tuple(Deliverable(f"deliverable-{at}", text) for at, text in enumerate(texts, 1)))
        return "added " + ", ".join([item.id for item in self.state.deliverables])

    def tool(self) -> Tool:
        """The ledger as a tool for any toolset."""
        return Tool(name="ledger", description=_DESCRIPTION, parameters=_PARAMETERS, run=self.run)

    def run(self, action: str, **arguments: Any) -> str:
        """What the tool does: one `action` with its own `arguments`; says which it lacks."""
        wanted = _ACTIONS.get(action)
        if wanted is None:
            raise ToolError(f"there is no action {_short(action)}; use one of: {', '.join(_ACTIONS)}")
        given = {name: value for name, value in arguments.items() if value is not None}
        for name, kind in wanted.items():
            if not isinstance(given.get(name), kind):
                raise ToolError(f"{action} needs {name}: {'a list of texts' if kind is list else 'a text'}")
        optional = [name for name in _OPTIONAL.get(action, ()) if name in given]
        for name in optional:
            if not isinstance(given[name], str):
                raise ToolError(f"{name} is a text")
        given = {name: given[name] for name in (*wanted, *optional)}
        act: Callable[..., str] = getattr(self, action)
        return act(**given)

    # -- what the model is shown ---------------------------------------------------------------------------------------

    def unfinished(self) -> tuple[Deliverable, ...]:
        """What is open or blocked."""
        return tuple(item for item in self.state.deliverables if item.status in ("open", "blocked"))

    def refusal(self) -> Problem | None:
        """Why the task is not done, or None: the gate is open."""
        left = self.unfinished()
        if not left:
            return None
        listing = "\n".join([f"- {_item(item)}" for item in left])
        return Problem(
            "ledger_open",
            f"done is refused while the ledger has something open or blocked; finish each, or mark it dropped with a "
            f"note:\n{listing}",
            path="/done",
        )

    def text(self) -> str:
        """The ledger for the prompt; nothing while nothing is in it."""
        state = self.state
        if not (state.deliverables or state.rationale or state.observations):
            return ""
        lines = [f"root_task: {_HARMLESS.line(state.root_task)}"] if state.root_task.strip() else []
        if state.deliverables:
            lines += ["deliverables:", *[f"  - {_item(item)}" for item in state.deliverables]]
        if state.rationale:
            lines.append(f"rationale: {_HARMLESS.line(state.rationale)}")
        if state.observations:
            lines += ["observations:", *[f"  - {_HARMLESS.line(text)}" for text in state.observations[-SHOWN:]]]
        return "\n".join(["<task_ledger>", *lines, "</task_ledger>"])

    def _set(self, **changes: Any) -> None:
        self.state = msgspec.structs.replace(self.state, **changes)

    def _fresh(self, known: set[str]) -> str:
        number = len(known) + 1
        while f"deliverable-{number}" in known:
            number += 1
        return f"deliverable-{number}"


def _item(item: Deliverable) -> str:
    note = f" — {_HARMLESS.line(item.note)}" if item.note else ""
    return f"[{_HARMLESS.line(item.id)}] ({item.status}) {_HARMLESS.line(item.text)}{note}"


def _line(text: object, name: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise ToolError(f"{name} must be a text that says something")
    if len(text) > MAX_TEXT:
        raise ToolError(f"{name} has {len(text)} characters; write at most {MAX_TEXT}")
    return text.strip().encode("utf-8", "replace").decode()


def _short(text: object) -> str:
    return repr(text)[:80]


_ACTIONS: dict[str, dict[str, type]] = {
    "add": {"text": str},
    "mark": {"id": str, "status": str},
    "rationale": {"text": str},
    "note": {"text": str},
    "seed_plan": {"items": list},
}
_OPTIONAL: dict[str, tuple[str, ...]] = {"add": ("id",), "mark": ("note",)}
_DESCRIPTION = (
    "Keeps the list of deliverables that decides when the task is done. add: text, maybe an id. mark: id and status, "
    "with a note if blocked or dropped. rationale, note: text. seed_plan: items, only while the list is empty."
)
_PARAMETERS: Json = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": list(_ACTIONS)},
        "id": {"type": "string", "description": "Of a deliverable, as the ledger shows it."},
        "text": {"type": "string", "maxLength": MAX_TEXT},
        "status": {"type": "string", "enum": list(STATUSES)},
        "note": {"type": "string", "maxLength": MAX_TEXT, "description": "Why; needed for blocked and dropped."},
        "items": {"type": "array", "items": {"type": "string", "maxLength": MAX_TEXT}, "maxItems": MAX_ITEMS},
    },
    "required": ["action"],
    "additionalProperties": False,
}
