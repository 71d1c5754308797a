"""Constrain a model's output by a grammar, as llama.cpp does: GBNF, from the beginning or from the first trigger.

    Grammars(generator).constraint({"grammar": "root ::= ..."})   ->   a `Constraint`, or None without a grammar

xgrammar enforces it. It is not one of rightcall's extras: `pip install xgrammar`.
"""

from __future__ import annotations

from typing import Any

import torch
import xgrammar
from answers import Generator

Json = dict[str, Any]


class Grammars:
    """GBNF for the tokens of one model. Tokens without text are never allowed, except the end token."""

    def __init__(self, generator: Generator) -> None:
        added_tokens = generator.tokenizer.get_added_tokens_decoder()
        hidden = {at for at, token in added_tokens.items() if token.special and at != generator.end}
        count = generator.tokenizer.get_vocab_size()
        words = ["" if at in hidden else generator.tokenizer.id_to_token(at) for at in range(count)]
        tokenizer_info = xgrammar.TokenizerInfo(words, xgrammar.VocabType.BYTE_LEVEL, stop_token_ids=[generator.end])
        self._compiler, self._generator = xgrammar.GrammarCompiler(tokenizer_info, max_threads=2), generator
        self._count = count

    def constraint(self, body: Json) -> GrammarConstraint | None:
        if not body.get("grammar"):
            return None
        grammar = self._compiler.compile_grammar(xgrammar.Grammar.from_ebnf(body["grammar"]))
        triggers = body.get("grammar_triggers", []) if body.get("grammar_lazy") else []
        mask = xgrammar.allocate_token_bitmask(1, self._count)
        return GrammarConstraint(
            xgrammar.GrammarMatcher(grammar), self._generator, mask, [each["value"] for each in triggers]
        )


class GrammarConstraint:
    """Follows an answer through a grammar: from its beginning, or from the first trigger."""

    def __init__(self, matcher: Any, generator: Generator, mask: torch.Tensor, triggers: list[str]) -> None:
        self._matcher, self._generator, self._mask, self._triggers = matcher, generator, mask, triggers
        self._accepted = 0

    def __call__(self, new_tokens: list[int]) -> torch.Tensor | None:
        if self._triggers:
            if not self._starts(self._generator.text(new_tokens)):
                return None
            self._triggers, self._accepted = [], len(new_tokens)
        for token in new_tokens[self._accepted :]:
            self._matcher.accept_token(token)
        self._accepted = len(new_tokens)
        self._matcher.fill_next_token_bitmask(self._mask)
        return self._mask[0]

    def _starts(self, text: str) -> bool:
        found = min([at for trigger in self._triggers if (at := text.find(trigger)) >= 0], default=-1)
        return found >= 0 and bool(self._matcher.accept_string(text[found:]))
