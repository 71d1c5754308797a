"""llguidance as the outside judge of a grammar: with a tokenizer of bytes, and with one that has special tokens."""

from __future__ import annotations

import re
from functools import lru_cache
from random import Random

import llguidance
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

from rightcall.formats.spec import Format, Special

BYTES = LLTokenizer("byte")


class Vocabulary:
    """Every byte, then special tokens, then the end."""

    def __init__(self, specials: list[str]) -> None:
        self.specials = {text: 256 + at for at, text in enumerate(specials)}
        self.tokens = [bytes([n]) for n in range(256)] + [text.encode() for text in specials] + [b"<end>"]
        self.eos_token_id = len(self.tokens) - 1
        self.bos_token_id = None
        self.special_token_ids = list(range(256, len(self.tokens)))

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())

    def encode(self, text: str) -> list[int]:
        """Special tokens wherever their text stands."""
        if not self.specials:
            return list(text.encode())
        parts = re.split("(" + "|".join(map(re.escape, sorted(self.specials, key=len, reverse=True))) + ")", text)
        out: list[int] = []
        for at, part in enumerate(parts):
            out += [self.specials[part]] if at % 2 else part.encode()
        return out

    def decode(self, tokens: list[int]) -> str:
        return b"".join([self.tokens[token] for token in tokens]).decode()


def specials_of(format: Format) -> list[str]:
    """The special tokens in a format's markers."""
    found: dict[str, None] = {}

    def visit(value: object) -> None:
        if isinstance(value, Special):
            found.update(dict.fromkeys(value.tokens))
        elif isinstance(value, (tuple, list)):
            for item in value:
                visit(item)
        elif isinstance(value, dict):
            visit(list(value.values()))
        elif hasattr(value, "__struct_fields__"):
            visit([getattr(value, name) for name in value.__struct_fields__])

    visit(format)
    return list(found)


@lru_cache(128)
def vocabulary(format_name: str) -> tuple[Vocabulary, LLTokenizer]:
    from rightcall.formats import find

    made = Vocabulary(specials_of(find(format_name)))
    return made, LLTokenizer(TokenizerWrapper(made))


def matcher(lark: str, tokenizer: LLTokenizer = BYTES) -> LLMatcher:
    limits = llguidance.LLParserLimits(
        max_items_in_row=20_000, step_max_items=500_000, initial_lexer_fuel=50_000_000, step_lexer_fuel=5_000_000
    )
    found = LLMatcher(tokenizer, LLMatcher.grammar_from_lark(lark), log_level=0, limits=limits)
    assert not found.is_error(), found.get_error()[:2000]
    return found


def accepts(lark: str, text: str) -> bool:
    """Is this whole text in the language?"""
    return accepts_tokens(matcher(lark), list(text.encode()))


def accepts_tokens(found: LLMatcher, tokens: list[int]) -> bool:
    taken = found.try_consume_tokens(tokens)
    assert not found.is_error() or taken < len(tokens), found.get_error()
    return taken == len(tokens) and found.is_accepting()


def how_far(lark: str, text: str) -> str:
    """What of a text is taken: for the message of a test that fails."""
    data = text.encode()
    taken = matcher(lark).try_consume_tokens(list(data))
    return data[:taken].decode("utf-8", "replace") + " <-here-> " + data[taken:].decode("utf-8", "replace")


def drawn(found: LLMatcher, eos: int, dice: Random, most: int = 400, stay: float = 0.5) -> list[int] | None:
    """Tokens drawn from the masks, one by one; None where the end did not come in time."""
    tokens: list[int] = []
    for _ in range(most):
        mask = found.compute_bitmask()
        allowed = [8 * at + bit for at, byte in enumerate(mask) for bit in range(8) if byte >> bit & 1]
        allowed = [token for token in allowed if token != eos]
        if found.is_accepting() and (not allowed or dice.random() > stay):
            return tokens
        if not allowed:
            return tokens if found.is_accepting() else None
        token = dice.choice(_likely(allowed, dice))
        if not found.consume_token(token):
            return None
        tokens.append(token)
    return None


def _likely(allowed: list[int], dice: Random) -> list[int]:
    """Letters, digits and structure more often than odd bytes; what closes something most often."""
    closing = [token for token in allowed if token >= 256 or chr(token) in '"}]),\n<>/|:']
    plain = [token for token in allowed if 32 <= token < 127]
    roll = dice.random()
    return closing if closing and roll < 0.6 else plain if plain and roll < 0.97 else allowed
