"""Token masks in Python: the tokens that may come next, for any tokenizer, computed by llguidance. No torch.

    matcher = Matcher(grammar, Vocabulary(tokens, eos=2, specials={"<|call|>": 7}))
    allowed = matcher.mask()  # one bit per token
    matcher.accept(token)  # False: the token was not allowed
    LogitsProcessor(matcher)(previous_tokens, logits)  # a list, a numpy array, or anything with the same indexing

Needs the extra `masks`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rightcall.errors import CallerError, GrammarCompileError
from rightcall.extras import require_extra

if TYPE_CHECKING:
    from rightcall.constrain.grammars import Grammar

NEVER = -math.inf

__all__ = ["LogitsProcessor", "Matcher", "Vocabulary"]


class Vocabulary:
    """The tokens of a model. Needs the extra `masks`.

    - `tokens`: the bytes of every token, by its id.
    - `eos`: the id of the token that ends a reply.
    - `specials`: ids of the tokens that represent a marker, by the marker's text.

    Raises `CallerError` if `eos` is not the id of a token.
    """

    def __init__(self, tokens: Sequence[bytes], *, eos: int, specials: dict[str, int] | None = None) -> None:
        require_extra("masks")
        from llguidance import LLTokenizer, TokenizerWrapper

        if not 0 <= eos < len(tokens):
            raise CallerError(f"the end token {eos} is not an id of the {len(tokens)} tokens")
        self.tokens, self.eos, self.specials = list(tokens), eos, dict(specials or {})
        self.tokenizer: Any = LLTokenizer(TokenizerWrapper(_Greedy(self)))

    @classmethod
    def of_bytes(cls, specials: Sequence[str] = ()) -> Vocabulary:
        """Return a vocabulary of all bytes, these `specials`, and an end token: for tests, and for byte-level
        models."""
        tokens = [bytes([n]) for n in range(256)] + [text.encode() for text in specials] + [b""]
        return cls(tokens, eos=len(tokens) - 1, specials={text: 256 + at for at, text in enumerate(specials)})

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of these `tokens`, without the end token; bytes that are not UTF-8 become U+FFFD."""
        return b"".join([self.tokens[token] for token in tokens if token != self.eos]).decode("utf-8", "replace")


class _Greedy:
    """The tokenizer interface that llguidance requires. Text is split into the longest tokens that fit."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        # Others without bytes (padding, unused ids) stay so: they represent no text and are never allowed.
        self.tokens = [
            token or (b"<end>" if at == vocabulary.eos else b"") for at, token in enumerate(vocabulary.tokens)
        ]
        self.eos_token_id, self.bos_token_id = vocabulary.eos, None
        self.special_token_ids = sorted({*vocabulary.specials.values(), vocabulary.eos})
        special = set(self.special_token_ids)
        self._by_bytes = {token: at for at, token in enumerate(self.tokens) if token and at not in special}
        self._longest = max(map(len, self._by_bytes), default=1)

    def __call__(self, text: bytes | str) -> list[int]:
        """Return the tokens of a text, the longest that fits at each position. Raises `CallerError` where none fits."""
        data = text if isinstance(text, bytes) else text.encode()
        out: list[int] = []
        at = 0
        while at < len(data):
            size = next(
                (n for n in range(min(self._longest, len(data) - at), 0, -1) if data[at : at + n] in self._by_bytes), 0
            )
            if not size:
                raise CallerError(f"no token of the vocabulary begins with the byte {data[at]:#04x}")
            out.append(self._by_bytes[data[at : at + size]])
            at += size
        return out


class Matcher:
    """Follows one reply through a `grammar`, token by token. The special tokens of the `vocabulary` are used where the
    grammar has them. Raises `GrammarCompileError` for a grammar that llguidance rejects."""

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary) -> None:
        from llguidance import LLMatcher

        self.vocabulary = vocabulary
        lark = grammar.lark(tokens=vocabulary.specials)
        self._matcher: Any = LLMatcher(vocabulary.tokenizer, LLMatcher.grammar_from_lark(lark), log_level=0)
        self._check()

    def _check(self) -> None:
        """Raise `GrammarCompileError` with llguidance's message if it reports an error."""
        if self._matcher.is_error():
            raise GrammarCompileError(f"llguidance rejects the grammar: {self._matcher.get_error()[:500]}")

    def mask(self) -> bytes:
        """Return one bit per token, with the first token in the lowest bit of the first byte; 1 means allowed. The
        bit of the end token is set where the reply may end. Raises `GrammarCompileError` if llguidance fails."""
        found = bytes(self._matcher.compute_bitmask())
        self._check()
        return found

    def allows(self, token: int) -> bool:
        """Return whether this `token` may come next; False for an id that is not in the vocabulary. The state is
        unchanged."""
        return 0 <= token < len(self.vocabulary.tokens) and bool(self.mask()[token >> 3] >> (token & 7) & 1)

    def accept(self, token: int) -> bool:
        """Consume this `token` and return whether it was allowed; if not, the state is unchanged. For the end token,
        return only whether the reply may end."""
        if token == self.vocabulary.eos:
            return self.may_end
        if not 0 <= token < len(self.vocabulary.tokens):
            return False
        return bool(self._matcher.try_consume_tokens([token]) == 1)

    def accept_text(self, text: str | bytes) -> int:
        """Consume a `text` in the longest tokens that fit, up to the first that is not allowed. Return the number of
        tokens that were consumed. Raises `CallerError`, with nothing consumed, if the vocabulary cannot express the
        text."""
        tokens = _Greedy(self.vocabulary)(text)
        return int(self._matcher.try_consume_tokens(tokens))

    def forced(self) -> list[int]:
        """Return the tokens that must come next because there is no alternative; empty if there is a choice. The
        state is unchanged."""
        return list(self._matcher.compute_ff_tokens())

    @property
    def may_end(self) -> bool:
        """True if the reply may end here."""
        return bool(self._matcher.is_accepting())

    @property
    def ended(self) -> bool:
        """True if only the end token may follow."""
        return bool(self._matcher.is_stopped())

    def copy(self) -> Matcher:
        """Return a matcher with the same state, for a search over several continuations."""
        made = object.__new__(Matcher)
        made.vocabulary, made._matcher = self.vocabulary, self._matcher.deep_copy()
        return made

    def reset(self) -> None:
        """Return to the start of a reply."""
        self._matcher.reset()


class LogitsProcessor:
    """Set the logits of forbidden tokens to minus infinity, in place, and return the logits. Called with the tokens so
    far and the next logits, as samplers do.

    - `matcher`: tracks the reply.
    - `prompt`: the number of tokens before the reply; None: all tokens of the first call.
    """

    def __init__(self, matcher: Matcher, *, prompt: int | None = None) -> None:
        self.matcher, self._seen = matcher, prompt

    def __call__(self, tokens: Sequence[int], logits: Any) -> Any:
        """Pass the `tokens` that are new since the last call to the matcher, set the `logits` of forbidden tokens to
        minus infinity in place, and return the logits. Raises `CallerError` if a new token was forbidden."""
        if self._seen is None:
            self._seen = len(tokens)  # the first call follows the prompt directly
        for token in list(tokens)[self._seen :]:
            if not self.matcher.accept(int(token)):
                raise CallerError(f"the token {int(token)} was sampled although the mask forbids it")
        self._seen = len(tokens)
        mask = self.matcher.mask()
        if hasattr(logits, "dtype"):
            return _mask_array_in_place(logits, mask)
        known = len(mask) * 8  # a model may have more logits than its vocabulary has tokens
        for at in range(len(logits)):
            if at >= known or not mask[at >> 3] >> (at & 7) & 1:
                logits[at] = NEVER
        return logits


def _mask_array_in_place(logits: Any, mask: bytes) -> Any:
    """Set the logits of forbidden tokens to minus infinity in this numpy array, and return the array. Tokens are on the
    last axis; those beyond the end of the mask are forbidden."""
    import numpy

    bits = numpy.unpackbits(numpy.frombuffer(mask, dtype=numpy.uint8), bitorder="little")
    allowed = numpy.zeros(logits.shape[-1], dtype=bool)
    size = min(len(bits), len(allowed))
    allowed[:size] = bits[:size].astype(bool)
    logits[..., ~allowed] = NEVER
    return logits
