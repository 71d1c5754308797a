"""Call ids: the model's own, or new ones, unique in a conversation.

One `Ids` belongs to one conversation. `Ids()` creates `call_` and random hex, and adds `_dup_N` to a repeated id;
`Ids.nine()` creates nine characters, as Mistral's servers require; `Ids.numbered("run")` counts
`run_<turn>_<position>`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


_POOL: list[str] = []
os.register_at_fork(after_in_child=_POOL.clear)  # otherwise two processes would create the same ids
_PREFIX = "call_"


def random_id() -> str:
    """Return `call_` and 24 random hex digits. Random bytes are fetched in bulk, because the system call is slow."""
    while True:
        try:
            return _POOL.pop()
        except IndexError:
            random = os.urandom(12 * 64).hex()
            _POOL.extend([_PREFIX + random[i : i + 24] for i in range(0, len(random), 24)])


def random_hex() -> str:
    """Return 24 random hex digits."""
    return random_id().removeprefix(_PREFIX)


def random_nine() -> str:
    """Return nine random letters and digits."""
    return "".join([ALPHABET[byte % 62] for byte in os.urandom(9)])


class Ids:
    """The ids of one conversation: the model's own where it gave one, else a new one, and each only once. Pass the same
    `Ids` to every parser of a conversation.

    - `mint`: creates a new id; by default `call_` and random hex.
    - `suffix`: a repeated id gets `_dup_N`; without it, it is replaced by a new one.
    """

    __slots__ = ("_before", "_mint", "_repeats", "_suffix", "_taken", "_turn")

    def __init__(self, mint: Callable[[], str] | None = None, *, suffix: bool = True) -> None:
        self._mint = mint or random_id
        self._suffix = suffix
        self._taken: dict[str, str] = {}  # each issued id, with the received id that it replaces
        self._repeats: dict[str, int] = {}
        self._turn = self._before = 0  # how many were taken before this turn

    @staticmethod
    def new() -> str:
        """Return a new id that belongs to no conversation."""
        return random_id()

    @staticmethod
    def nine() -> Ids:
        """Return `Ids` with nine letters or digits; an id of another form, or a repeated one, is replaced by a new
        one."""
        return Ids(random_nine, suffix=False)

    @staticmethod
    def numbered(prefix: str) -> Ids:
        """Return `Ids` that count `prefix_<turn>_<position>`: the same on every run, for tests. `prefix` is any text;
        `next_turn` starts the next turn."""
        ids = Ids(lambda: f"{prefix}_{ids._turn}_{len(ids._taken) - ids._before}")
        return ids

    def next_turn(self) -> None:
        """Start the next turn of `Ids.numbered`: positions count from 0 again."""
        self._turn, self._before = self._turn + 1, len(self._taken)

    def take(self, received: str = "") -> str:
        """Return the id to use for the `received` one, or for none: unique in the conversation. `received` is stored
        for the method `received`."""
        used = received if received and (self._suffix or is_nine(received)) else self._mint()
        if used in self._taken:
            used = self._unique(used)
        self._taken[used] = received
        return used

    def forget(self, used: Iterable[str]) -> None:
        """Release these ids in `used`, so that they can be taken again; unknown ones are ignored."""
        for each in used:
            self._taken.pop(each, None)

    def received(self, used: str) -> str:
        """Return the id that was received for the one in `used`, which `take` returned; `used` itself if none was
        received."""
        return self._taken.get(used) or used

    def _unique(self, wanted: str) -> str:
        """Return an id that is not taken in place of `wanted`: a new one, or `wanted` with `_dup_N` appended."""
        candidate = wanted
        while candidate in self._taken and not self._suffix:
            candidate = self._mint()
        while candidate in self._taken:
            self._repeats[wanted] = self._repeats.get(wanted, 0) + 1
            candidate = f"{wanted}_dup_{self._repeats[wanted]}"
        return candidate


def is_nine(text: str) -> bool:
    """Return True for nine ASCII letters or digits, the form of id that Mistral's servers require."""
    return len(text) == 9 and text.isascii() and text.isalnum()
