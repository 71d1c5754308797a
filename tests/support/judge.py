"""llguidance as the independent matcher of a grammar: with a tokenizer of bytes, and with special tokens."""

from __future__ import annotations

import re
from functools import lru_cache
from random import Random

import llguidance
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

from rightcall.formats.spec import Format, Special

BYTES = LLTokenizer("byte")


class Vocabulary:
    """Every byte, then special tokens, then the end token."""

    def __init__(self, specials: list[str]) -> None:
        self.specials = {text: 256 + at for at, text in enumerate(specials)}
        self.tokens = [bytes([n]) for n in range(256)] + [text.encode() for text in specials] + [b"<end>"]
        self.eos_token_id = len(self.tokens) - 1
        self.bos_token_id = None
        self.special_token_ids = list(range(256, len(self.tokens)))

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())

    def encode(self, text: str) -> list[int]:
        """Encode special tokens wherever their text appears."""
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
    """Return the special tokens in a format's markers."""
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

    own_vocabulary = Vocabulary(specials_of(find(format_name)))
    return own_vocabulary, LLTokenizer(TokenizerWrapper(own_vocabulary))


def matcher(lark: str, tokenizer: LLTokenizer = BYTES) -> LLMatcher:
    limits = llguidance.LLParserLimits(
        max_items_in_row=20_000, step_max_items=500_000, initial_lexer_fuel=50_000_000, step_lexer_fuel=5_000_000
    )
    found = LLMatcher(tokenizer, LLMatcher.grammar_from_lark(lark), log_level=0, limits=limits)
    assert not found.is_error(), found.get_error()[:2000]
    return found


def accepts(lark: str, text: str) -> bool:
    """Return whether the whole text is in the language."""
    return accepts_tokens(matcher(lark), list(text.encode()))


def accepts_tokens(found: LLMatcher, tokens: list[int]) -> bool:
    accepted_count = found.try_consume_tokens(tokens)
    assert not found.is_error() or accepted_count < len(tokens), found.get_error()
    return accepted_count == len(tokens) and found.is_accepting()


def show_accepted_prefix(lark: str, text: str) -> str:
    """Return the text with a mark after the accepted prefix, for the message of a failed test."""
    data = text.encode()
    accepted_count = matcher(lark).try_consume_tokens(list(data))
    return (
        data[:accepted_count].decode("utf-8", "replace")
        + " <-here-> "
        + data[accepted_count:].decode("utf-8", "replace")
    )


def draw_tokens(
    found: LLMatcher, eos: int, dice: Random, max_tokens: int = 400, continue_rate: float = 0.5
) -> list[int] | None:
    """Draw tokens from the masks one by one; return None if the end was not reached in time."""
    tokens: list[int] = []
    for _ in range(max_tokens):
        mask = found.compute_bitmask()
        allowed = [8 * at + bit for at, byte in enumerate(mask) for bit in range(8) if byte >> bit & 1]
        allowed = [token for token in allowed if token != eos]
        if found.is_accepting() and (not allowed or dice.random() > continue_rate):
            return tokens
        if not allowed:
            return tokens if found.is_accepting() else None
        token = dice.choice(_prefer_common(allowed, dice))
        if not found.consume_token(token):
            return None
        tokens.append(token)
    return None


def _prefer_common(allowed: list[int], dice: Random) -> list[int]:
    """Prefer tokens that close something, then letters, digits and structure, to unusual bytes."""
    closing = [token for token in allowed if token >= 256 or chr(token) in '"}]),\n<>/|:']
    plain = [token for token in allowed if 32 <= token < 127]
    roll = dice.random()
    return closing if closing and roll < 0.6 else plain if plain and roll < 0.97 else allowed
