"""Holds what a model says to a grammar, as llama.cpp does: GBNF, from the beginning or from the first trigger on.

    Grammars(speaker).hold({"grammar": "root ::= ..."})   ->   what `Asked` takes, or None if there is no grammar

xgrammar enforces it, which is none of rightcall's extras: `pip install xgrammar`.
"""

from __future__ import annotations

from typing import Any

import torch
import xgrammar
from answers import Speaker

Json = dict[str, Any]


class Grammars:
    """GBNF for the tokens of one model. Those that stand for no text are never allowed, but for the end."""

    def __init__(self, speaker: Speaker) -> None:
        made = speaker.tokenizer.get_added_tokens_decoder()
        hidden = {at for at, token in made.items() if token.special and at != speaker.end}
        count = speaker.tokenizer.get_vocab_size()
        words = ["" if at in hidden else speaker.tokenizer.id_to_token(at) for at in range(count)]
        known = xgrammar.TokenizerInfo(words, xgrammar.VocabType.BYTE_LEVEL, stop_token_ids=[speaker.end])
        self._compiler, self._speaker = xgrammar.GrammarCompiler(known, max_threads=2), speaker
        self._count = count

    def hold(self, body: Json) -> Held | None:
        if not body.get("grammar"):
            return None
        grammar = self._compiler.compile_grammar(xgrammar.Grammar.from_ebnf(body["grammar"]))
        triggers = body.get("grammar_triggers", []) if body.get("grammar_lazy") else []
        mask = xgrammar.allocate_token_bitmask(1, self._count)
        return Held(xgrammar.GrammarMatcher(grammar), self._speaker, mask, [each["value"] for each in triggers])


class Held:
    """Follows an answer through a grammar: from its beginning, or from the first trigger in it on."""

    def __init__(self, matcher: Any, speaker: Speaker, mask: torch.Tensor, triggers: list[str]) -> None:
        self._matcher, self._speaker, self._mask, self._triggers = matcher, speaker, mask, triggers
        self._seen = 0

    def __call__(self, said: list[int]) -> torch.Tensor | None:
        if self._triggers:
            if not self._begins(self._speaker.text(said)):
                return None
            self._triggers, self._seen = [], len(said)
        for token in said[self._seen :]:
            self._matcher.accept_token(token)
        self._seen = len(said)
        self._matcher.fill_next_token_bitmask(self._mask)
        return self._mask[0]

    def _begins(self, text: str) -> bool:
        found = min([at for trigger in self._triggers if (at := text.find(trigger)) >= 0], default=-1)
        return found >= 0 and bool(self._matcher.accept_string(text[found:]))
