"""The task ledger: a list of deliverables that the model keeps, and the check that refuses "done" while one is open.

    ledger = Ledger("Fix the parser")
    tools = Toolset([*tools, ledger.tool()])     # the model keeps it, with a tool like any other
    ledger.text()                                # <task_ledger> ..., for the next turn; "" while it is empty
    ledger.refusal()                             # None, or the problem to answer `<done>` with

The state is plain data: `to_json` and `from_json` carry it over a restart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec

from rightcall.contracts.typescript import MarkerEscaper
from rightcall.errors import CallerError, ToolError
from rightcall.types import Json, Problem, Tool

Status = Literal["open", "done", "blocked", "dropped"]
STATUSES: tuple[Status, ...] = get_args(Status)

MAX_TEXT = 2_000  # characters of one text
MAX_ITEMS = 256
MAX_OBSERVATIONS = 256
SHOWN = 5  # observations in the prompt
_ESCAPER = MarkerEscaper()


class Deliverable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that must be delivered.

    `id` names it, `text` describes it, `status` is "open", "done", "blocked" or "dropped", and `note` gives the
    reason for the status."""

    id: str
    text: str
    status: Status = "open"
    note: str = ""


class LedgerState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A ledger as plain data.

    - `root_task`: the whole task.
    - `deliverables`: in the order they were added.
    - `rationale`: why the task is done in this way.
    - `observations`: notes taken during the task; the last few are shown.
    """

    root_task: str = ""
    deliverables: tuple[Deliverable, ...] = ()
    rationale: str = ""
    observations: tuple[str, ...] = ()


class Ledger:
    """The deliverables of a task, and the check that refuses "done" while one of them is open or blocked.

    The model keeps the ledger with a tool like any other. Each action replaces the `LedgerState`. An invalid action of
    the model raises `ToolError`.

    - `root_task`: the whole task, shown on top.
    - `state`: the state to continue from, instead of an empty ledger.
    """

    def __init__(self, root_task: str = "", state: LedgerState | None = None) -> None:
        self.state = LedgerState(root_task) if state is None else state

    def to_json(self) -> str:
        """Return the state as JSON text, for `from_json` after a restart."""
        return msgspec.json.encode(self.state).decode()

    @classmethod
    def from_json(cls, text: str) -> Ledger:
        """Return the ledger that `to_json` wrote as `text`. Raises `CallerError` for anything else."""
        try:
            return cls(state=msgspec.json.decode(text, type=LedgerState))
        except msgspec.DecodeError as error:
            raise CallerError(f"not a ledger: {error}; pass the text that Ledger.to_json returned") from None

    # -- the actions of the model --------------------------------------------------------------------------------------

    def add(self, text: str, id: str = "") -> str:
        """Add a deliverable with this `text` and return its id, which is generated unless `id` is given. Raises
        `ToolError` for an invalid text, an id that exists, or a full ledger."""
        known = {item.id for item in self.state.deliverables}
        if len(known) >= MAX_ITEMS:
            raise ToolError(f"the ledger is full: {MAX_ITEMS} deliverables; no more can be added")
        id = id.strip() or self._generate_id(known)
        if id in known:
            raise ToolError(f"there is a deliverable {_short_repr(id)} already; leave the id out, or choose another")
        self._replace_state(
            deliverables=(*self.state.deliverables, Deliverable(_validate_text(id, "id"), _validate_text(text, "text")))
        )
        return id

    def mark(self, id: str, status: str, note: str = "") -> str:
        """Set the `status` of the deliverable with this `id` and return a confirmation for the model. Raises
        `ToolError` for an unknown id or status, and for "blocked" or "dropped" without a `note`."""
        ids = [item.id for item in self.state.deliverables]
        if id not in ids:
            raise ToolError(f"there is no deliverable {_short_repr(id)}; the ids are: {', '.join(ids) or 'none yet'}")
        found = next((known for known in STATUSES if known == status), None)
        if found is None:
            raise ToolError(f"there is no status {_short_repr(status)}; use one of: {', '.join(STATUSES)}")
        if found in ("blocked", "dropped") and not note.strip():
            raise ToolError(f"a deliverable that is {found} needs a note that says why; send note too")
        changes: dict[str, str] = {"note": _validate_text(note, "note")} if note.strip() else {}
        marked = [*self.state.deliverables]
        at = ids.index(id)
        marked[at] = msgspec.structs.replace(marked[at], status=found, **changes)
        self._replace_state(deliverables=tuple(marked))
        return f"{id} is {found}"

    def rationale(self, text: str) -> str:
        """Replace the rationale by this `text` and return "recorded". Raises `ToolError` for an invalid text."""
        self._replace_state(rationale=_validate_text(text, "text"))
        return "recorded"

    def note(self, text: str) -> str:
        """Append this `text` to the observations, of which the last 256 are kept, and return "recorded". Raises
        `ToolError` for an invalid text."""
        self._replace_state(observations=(*self.state.observations, _validate_text(text, "text"))[-MAX_OBSERVATIONS:])
        return "recorded"

    def seed_plan(self, items: list[str]) -> str:
        """Add a deliverable for each of `items` and return a confirmation with their ids. Raises `ToolError` if the
        ledger has deliverables already, or for an invalid item or number of items."""
        if self.state.deliverables:
            raise ToolError("the ledger has deliverables already; add further ones one by one")
        if not items or len(items) > MAX_ITEMS:
            raise ToolError(f"a plan has 1 to {MAX_ITEMS} items; send them as a list of texts")
        texts = [_validate_text(item, f"items[{at}]") for at, item in enumerate(items)]
        self._replace_state(
            deliverables=tuple(Deliverable(f"deliverable-{at}", text) for at, text in enumerate(texts, 1))
        )
        return "added " + ", ".join([item.id for item in self.state.deliverables])

    def tool(self) -> Tool:
        """Return the ledger as a tool for any toolset."""
        return Tool(name="ledger", description=_DESCRIPTION, parameters=_PARAMETERS, run=self.run)

    def run(self, action: str, **arguments: Any) -> str:
        """Run one `action` of the tool ("add", "mark", "rationale", "note" or "seed_plan") with its `arguments` and
        return the message for the model. Raises `ToolError` for an unknown action and for a missing or wrong
        argument."""
        required = _ACTIONS.get(action)
        if required is None:
            raise ToolError(f"there is no action {_short_repr(action)}; use one of: {', '.join(_ACTIONS)}")
        given = {name: value for name, value in arguments.items() if value is not None}
        optional = [name for name in _OPTIONAL.get(action, ()) if name in given]
        _check_argument_types(action, given, required, optional)
        act: Callable[..., str] = getattr(self, action)
        return act(**{name: given[name] for name in (*required, *optional)})

    # -- output for the prompt -----------------------------------------------------------------------------------------

    def unfinished(self) -> tuple[Deliverable, ...]:
        """Return the deliverables that are open or blocked."""
        return tuple(item for item in self.state.deliverables if item.status in ("open", "blocked"))

    def refusal(self) -> Problem | None:
        """Return the problem that says why the task is not done, or None when no deliverable is open or blocked."""
        left = self.unfinished()
        if not left:
            return None
        listing = "\n".join([f"- {_item_line(item)}" for item in left])
        return Problem(
            "ledger_open",
            f"done is refused while the ledger has something open or blocked; finish each, or mark it dropped with a "
            f"note:\n{listing}",
            path="/done",
        )

    def text(self) -> str:
        """Return the `<task_ledger>` block for the prompt: the task, the deliverables with their status, the rationale
        and the last observations; "" without deliverables, rationale and observations."""
        state = self.state
        if not (state.deliverables or state.rationale or state.observations):
            return ""
        lines = [f"root_task: {_ESCAPER.escape_line(state.root_task)}"] if state.root_task.strip() else []
        if state.deliverables:
            lines += ["deliverables:", *[f"  - {_item_line(item)}" for item in state.deliverables]]
        if state.rationale:
            lines.append(f"rationale: {_ESCAPER.escape_line(state.rationale)}")
        if state.observations:
            lines += ["observations:", *[f"  - {_ESCAPER.escape_line(text)}" for text in state.observations[-SHOWN:]]]
        return "\n".join(["<task_ledger>", *lines, "</task_ledger>"])

    def _replace_state(self, **changes: Any) -> None:
        """Replace the state by a copy in which these fields are changed."""
        self.state = msgspec.structs.replace(self.state, **changes)

    def _generate_id(self, known: set[str]) -> str:
        """Return an id "deliverable-N" that is not among `known`."""
        number = len(known) + 1
        while f"deliverable-{number}" in known:
            number += 1
        return f"deliverable-{number}"


def _item_line(item: Deliverable) -> str:
    """Return one line for a deliverable: id, status, text and note, with markers of the protocol escaped."""
    note = f" — {_ESCAPER.escape_line(item.note)}" if item.note else ""
    return f"[{_ESCAPER.escape_line(item.id)}] ({item.status}) {_ESCAPER.escape_line(item.text)}{note}"


def _validate_text(text: object, name: str) -> str:
    """Return a text argument, stripped and encodable as UTF-8. Raises `ToolError`, with the argument's `name`, if it
    is no string, blank, or longer than `MAX_TEXT`."""
    if not isinstance(text, str) or not text.strip():
        raise ToolError(f"{name} must be a text that is not blank")
    if len(text) > MAX_TEXT:
        raise ToolError(f"{name} has {len(text)} characters; write at most {MAX_TEXT}")
    return text.strip().encode("utf-8", "replace").decode()


def _short_repr(text: object) -> str:
    """Return the `repr` of a value, at most 80 characters of it."""
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


def _check_argument_types(action: str, given: Json, required: Mapping[str, type], optional: Sequence[str]) -> None:
    """Raise `ToolError` for a required argument of the `action` that is missing in `given` or of a wrong type, or an
    optional one that is no text; otherwise do nothing. `required` maps names to types."""
    for name, kind in required.items():
        if not isinstance(given.get(name), kind):
            raise ToolError(f"{action} needs {name}: {'a list of texts' if kind is list else 'a text'}")
    for name in optional:
        if not isinstance(given[name], str):
            raise ToolError(f"{name} is a text")
