"""Call ids: kept where the model gave one, minted where it did not, never twice the same.

One `Ids` belongs to one conversation. `Ids()` mints `call_` and random hex and tells a repeated id apart with `_dup_N`;
`Ids.nine()` mints nine characters, as Mistral's servers demand; `Ids.numbered("run")` counts `run_<turn>_<position>`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


_POOL: list[str] = []
os.register_at_fork(after_in_child=_POOL.clear)  # or two processes would mint the same ids
_PREFIX = "call_"


def random_id() -> str:
    """`call_` and 24 random hex digits. Randomness is fetched for many at once: asking for it is what costs."""
    while True:
        try:
            return _POOL.pop()
        except IndexError:
            random = os.urandom(12 * 64).hex()
            _POOL.extend([_PREFIX + random[i : i + 24] for i in range(0, len(random), 24)])


def random_hex() -> str:
    """24 random hex digits."""
    return random_id().removeprefix(_PREFIX)


def nine_id() -> str:
    return "".join([ALPHABET[byte % 62] for byte in os.urandom(9)])


class Ids:
    """The ids of one conversation: kept where the model gave one, minted where it did not, never twice the same. Pass
    the same `Ids` to every reading of a conversation.

    - `mint`: makes a new id; `call_` and random hex unless given.
    - `suffix`: a repeated id is told apart by `_dup_N`; without it, minted anew.
    """

    __slots__ = ("_before", "_mint", "_repeats", "_suffix", "_taken", "_turn")

    def __init__(self, mint: Callable[[], str] | None = None, *, suffix: bool = True) -> None:
        self._mint = mint or random_id
        self._suffix = suffix
        self._taken: dict[str, str] = {}  # each id that was given out, and the one received that it stands for
        self._repeats: dict[str, int] = {}
        self._turn = self._before = 0  # how many were taken before this turn

    @staticmethod
    def new() -> str:
        """One fresh id, of no conversation."""
        return random_id()

    @staticmethod
    def nine() -> Ids:
        """Nine letters or digits; an id of another shape, or a repeated one, is minted anew and never suffixed."""
        return Ids(nine_id, suffix=False)

    @staticmethod
    def numbered(prefix: str) -> Ids:
        """`prefix_<turn>_<position>`: the same ids on every run, for tests. `prefix` is any text; `next_turn` starts
        the next turn."""
        ids = Ids(lambda: f"{prefix}_{ids._turn}_{len(ids._taken) - ids._before}")
        return ids

    def next_turn(self) -> None:
        """The next turn of `Ids.numbered` begins: positions count from 0 again."""
        self._turn, self._before = self._turn + 1, len(self._taken)

    def take(self, received: str = "") -> str:
        """The id to use for the one that was `received`, or for none: unique in the conversation, and it is remembered
        which it stands for."""
        used = received if received and (self._suffix or is_nine(received)) else self._mint()
        if used in self._taken:
            used = self._unique(used)
        self._taken[used] = received
        return used

    def forget(self, used: Iterable[str]) -> None:
        """These ids in `used`, the last that were taken, are no call's after all."""
        for each in used:
            self._taken.pop(each, None)

    def received(self, used: str) -> str:
        """The id as it was received, for the one in `used` that `take` gave out; a minted id stands for itself."""
        return self._taken.get(used) or used

    def _unique(self, wanted: str) -> str:
        """`wanted` is taken: minted anew, or told apart by a suffix."""
        candidate = wanted
        while candidate in self._taken and not self._suffix:
            candidate = self._mint()
        while candidate in self._taken:
            self._repeats[wanted] = self._repeats.get(wanted, 0) + 1
            candidate = f"{wanted}_dup_{self._repeats[wanted]}"
        return candidate


def is_nine(text: str) -> bool:
    return len(text) == 9 and text.isascii() and text.isalnum()
