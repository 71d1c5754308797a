"""llama.cpp as the matcher of a GBNF grammar, without a model: its matcher is in the xllamacpp wheel.

The two functions of llama.cpp that compile a grammar and consume a character are called by their C++ names. A text is
accepted if one of the open stacks is empty after its last character.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

_INIT = "_Z23llama_grammar_init_implPK11llama_vocabPKcS3_bPS3_mPKim"
_ACCEPT = "_Z20llama_grammar_acceptP13llama_grammarj"
_STACKS = "_Z24llama_grammar_get_stacksP13llama_grammar"
_FREE = "_Z23llama_grammar_free_implP13llama_grammar"


class _Vector(ctypes.Structure):
    _fields_ = [("begin", ctypes.c_void_p), ("end", ctypes.c_void_p), ("room", ctypes.c_void_p)]


@lru_cache(1)
def _library() -> Any:
    import xllamacpp

    library = ctypes.CDLL(xllamacpp.xllamacpp.__file__)
    init = getattr(library, _INIT)
    init.restype = ctypes.c_void_p
    init.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_bool,
        *[ctypes.c_void_p, ctypes.c_size_t] * 2,
    ]
    getattr(library, _ACCEPT).argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    getattr(library, _ACCEPT).restype = None
    getattr(library, _STACKS).argtypes = [ctypes.c_void_p]
    getattr(library, _STACKS).restype = ctypes.POINTER(_Vector)
    getattr(library, _FREE).argtypes = [ctypes.c_void_p]
    getattr(library, _FREE).restype = None
    return library


class Llama:
    """One grammar. `accepts` starts from the beginning for every text."""

    def __init__(self, gbnf: str) -> None:
        self.gbnf = gbnf.encode()
        self._close(self._open())  # raises for a grammar that llama.cpp rejects

    def _open(self) -> int:
        found = getattr(_library(), _INIT)(None, self.gbnf, b"root", False, None, 0, None, 0)
        assert found, "llama.cpp rejects this grammar:\n" + self.gbnf.decode()[:3000]
        return int(found)

    def _close(self, grammar: int) -> None:
        getattr(_library(), _FREE)(grammar)

    def _stacks(self, grammar: int) -> list[_Vector]:
        outer = getattr(_library(), _STACKS)(grammar).contents
        count = ((outer.end or 0) - (outer.begin or 0)) // ctypes.sizeof(_Vector)
        return [_Vector.from_address(outer.begin + at * ctypes.sizeof(_Vector)) for at in range(count)]

    def accepted_prefix(self, text: str) -> tuple[int, bool]:
        """Return the number of accepted characters, and whether the text may end after them."""
        grammar = self._open()
        try:
            accept = getattr(_library(), _ACCEPT)
            for at, char in enumerate(text):
                accept(grammar, ord(char))
                if not self._stacks(grammar):
                    return at, False
            return len(text), any(stack.begin == stack.end for stack in self._stacks(grammar))
        finally:
            self._close(grammar)

    def accepts(self, text: str) -> bool:
        return self.accepted_prefix(text) == (len(text), True)
