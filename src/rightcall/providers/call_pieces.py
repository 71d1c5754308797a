"""Which call does this piece belong to? Servers count, name and repeat in many ways.

In this order: the id, the provider's index, the position, and last whether the JSON is already whole: then what begins
again is another call. A piece that cannot be told apart continues the call before it, so that no argument text is lost.
"""

from __future__ import annotations

from collections.abc import Callable

from rightcall.providers.deltas import Beside, DeltaPiece, Slot
from rightcall.providers.json_state import JsonState, is_repeated
from rightcall.strict_json import is_same
from rightcall.tools.toolset import Toolset
from rightcall.types import Problem, Repair

_BLANKS = " \t\r\n"


class Gathered:
    """A native call as far as it has come."""

    __slots__ = (
        *("arguments", "begun", "beside", "clashes", "custom", "done", "draft", "ended", "fault", "given", "id"),
        *("index", "name", "named_at", "parsed", "problems", "repairs", "size", "slot", "started", "state"),
        *("used_id", "waiting"),
        "_scanned",
    )

    def __init__(self, piece: DeltaPiece, index: int) -> None:
        self.index = index
        self.slot, self.id, self.custom = piece.slot, piece.id, piece.custom
        self.name = self.draft = ""
        self.arguments: list[str] = []
        self.size = 0  # how much of it there is
        self.begun = False  # argument text has come
        self.fault: tuple[str, str] | None = None
        self.done = False  # nothing more comes
        self.parsed = self.ended = False
        self.started = False  # `CallStart` went out: id and name are final
        self.used_id = ""
        self.repairs: tuple[Repair, ...] = ()
        self.problems: tuple[Problem, ...] = ()  # that are known before it ends
        self.beside: dict[str, Beside] = {}  # fields that are not known, by their names
        self.clashes: list[Beside] = []  # those that came again with another value
        self.given = 0  # how many characters of the arguments went out
        self.named_at = -1  # the chunk that last named it
        self.waiting: list[str] = []  # argument text that was not passed on
        self.state = JsonState()
        self._scanned = 0

    @property
    def text(self) -> str:
        if len(self.arguments) > 1:
            self.scan()
            self.arguments, self._scanned = ["".join(self.arguments)], 1
        return self.arguments[0] if self.arguments else ""

    def is_text(self, text: str) -> bool:
        """Is this what the arguments are so far? What has another size is not compared, since that joins the pieces."""
        return len(text) == self.size and text == self.text

    def has_whole(self, text: str) -> bool:
        """Are the arguments JSON that has ended, and is this what they are?"""
        return self.begun and not self.custom and self.scan().whole and self.is_text(text)

    @property
    def sent(self) -> str:
        """The argument text: what came as such, or else what came with the call's beginning."""
        return self.text if self.begun or not self.draft else self.draft

    def scan(self) -> JsonState:
        """The state of the arguments that have come."""
        for piece in self.arguments[self._scanned :]:
            self.state.feed(piece)
        self._scanned = len(self.arguments)
        return self.state

    @property
    def is_whole(self) -> bool:
        """Was its end seen, so that a limit that ended the answer cannot have cut it off? The provider said so; or the
        argument text is the model's own, and JSON to its last bracket. Of anything else nobody knows."""
        if self.ended or self.custom or self.parsed:
            return self.ended
        return self.scan().whole or is_repeated(self.text)

    def watch(self, plain: Callable[[str], bool]) -> None:
        """From now on the state tells what may be passed on."""
        self.state, self._scanned = JsonState(plain), 0
        self.waiting = list(self.arguments)

    def passable(self) -> str:
        """Argument text that is final and was not passed on yet; of a custom tool's text nothing is."""
        if self.custom:
            return ""
        ready = self.scan().final - self.given
        if ready <= 0:
            return ""
        waiting = "".join(self.waiting)
        self.waiting = [waiting[ready:]]
        self.given += ready
        return waiting[:ready]

    def join(self, piece: DeltaPiece) -> None:
        """What the piece says beside name, id and arguments."""
        self.draft = self.draft or piece.draft
        self.fault = self.fault or piece.fault
        self.parsed, self.ended = self.parsed or piece.parsed, self.ended or piece.ended
        for field in piece.beside:
            known = self.beside.setdefault(field.key, field)
            if not is_same(known.value, field.value):
                self.clashes.append(field)

    def extend(self, text: str) -> None:
        self.arguments.append(text)
        self.waiting.append(text)
        self.size += len(text)
        self.begun = self.begun or bool(text.strip(_BLANKS))

    def replace(self, text: str) -> None:
        """These are all the arguments, whatever came before."""
        self.arguments, self.waiting, self.size = [text], [text], len(text)
        self.state, self._scanned = JsonState(self.state.plain), 0
        self.begun = bool(text.strip(_BLANKS))


class Gather:
    """The calls of one answer, in the order they began."""

    def __init__(self, tools: Toolset | None, first: int) -> None:
        self.calls: list[Gathered] = []
        self.chunk = 0
        self._first = first
        self._tools = tools
        self._by_id: dict[str, Gathered] = {}
        self._by_slot: dict[Slot, Gathered] = {}
        self._open: list[Gathered] = []  # those that may go on, with some that have ended since

    def call_in(self, slot: Slot | None) -> Gathered | None:
        if slot is None:
            return self.calls[-1] if self.calls else None
        return self._by_slot.get(slot)

    def add(self, piece: DeltaPiece) -> Gathered:
        """The call that this piece went to; its argument text is the caller's to add."""
        call = None if piece.whole else self._known(piece)
        if call is None or self._begins_anew(call, piece):
            call = Gathered(piece, self._first + len(self.calls))
            self.calls.append(call)
            self._open.append(call)
        if piece.slot is not None:
            self._by_slot[piece.slot] = call
        if piece.id:
            call.id = call.id or piece.id
            self._by_id[piece.id] = call
        if piece.name:
            self._name(call, piece.name)
        call.join(piece)
        return call

    def _known(self, piece: DeltaPiece) -> Gathered | None:
        """The call that this piece points at, if any."""
        by_slot = None if piece.slot is None else self._by_slot.get(piece.slot)
        by_id = self._by_id.get(piece.id) if piece.id else None
        if by_id is not None and (by_slot is None or by_slot.id != piece.id):
            return by_id
        if by_slot is not None:
            return by_slot
        if not self.calls or self._announces(piece):
            return None
        return self.calls[-1] if piece.name else self._last_open()

    def _last_open(self) -> Gathered:
        """Whose are arguments under an unheard-of index or id? They were announced under another one."""
        while self._open and (self._open[-1].done or self._open[-1].scan().whole):
            self._open.pop()
        return self._open[-1] if self._open else self.calls[-1]

    def _announces(self, piece: DeltaPiece) -> bool:
        """Neither its id nor its index is known: is it the first piece of a call?"""
        new_id, new_slot = bool(piece.id), piece.slot is not None
        return (new_id and new_slot) or ((new_id or new_slot) and (bool(piece.name) or not piece.arguments))

    def _begins_anew(self, call: Gathered, piece: DeltaPiece) -> bool:
        """The piece points at this call; but is it the beginning of another?"""
        if piece.id and call.id and piece.id != call.id and (piece.name or not piece.arguments):
            return True
        if piece.all:
            return False
        return self._names_another(call, piece) if piece.name else self._opens_another(call, piece)

    def _opens_another(self, call: Gathered, piece: DeltaPiece) -> bool:
        """Arguments without a name, at a call whose own are whole: are they the next call's?"""
        begins = not self._is_of(call, piece) and _opens(piece) and call.scan().whole
        return begins and not call.is_text(piece.arguments)

    def _names_another(self, call: Gathered, piece: DeltaPiece) -> bool:
        if not call.name:
            return False
        if call.named_at == self.chunk or call.done:
            return True
        if not call.begun:
            return self._is_another_name(call, piece)
        return piece.name != call.name or self._same_tool_again(call, piece)

    def _is_of(self, call: Gathered, piece: DeltaPiece) -> bool:
        """Does the piece say, by its id or else by its index, that it is this call's?"""
        return piece.id == call.id if piece.id else piece.slot is not None and piece.slot == call.slot

    def _is_another_name(self, call: Gathered, piece: DeltaPiece) -> bool:
        """No arguments yet: is this a part of the name, the name again, or the next call's?"""
        if _is_elsewhere(call, piece) and (piece.name != call.name or not piece.arguments):
            return True
        if piece.name == call.name:
            return False
        tools = self._tools
        return tools is not None and call.name in tools and piece.name in tools and call.name + piece.name not in tools

    def _same_tool_again(self, call: Gathered, piece: DeltaPiece) -> bool:
        """The name came again after arguments: repeated with every chunk, or a second call of the same tool."""
        state = call.scan()
        if state.whole:
            repeated = bool(piece.id) and piece.id == call.id and call.is_text(piece.arguments)
            return not repeated if piece.arguments.strip(_BLANKS) else _is_elsewhere(call, piece)
        if not _opens(piece) or call.custom:
            return False
        return not state.broken and state.would_break(piece.arguments)

    def _name(self, call: Gathered, name: str) -> None:
        call.named_at = self.chunk
        if call.started or (call.name and call.begun):
            return
        if name == call.name:
            tools = self._tools
            if tools is None or call.name in tools or call.name + name not in tools:
                return  # repeated whole, not the second half of a name that repeats itself
        call.name += name


def _is_elsewhere(call: Gathered, piece: DeltaPiece) -> bool:
    """Does the provider count this piece as another call's?"""
    return None not in (piece.slot, call.slot) and piece.slot != call.slot


def _opens(piece: DeltaPiece) -> bool:
    return piece.arguments.lstrip(_BLANKS).startswith("{")
