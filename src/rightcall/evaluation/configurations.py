"""How a model is asked and read: from bare to full, each configuration the one before and one part more.

`bare` is a plain client with a loop: it reads the calls that come in the form that was asked for, runs nothing that is
not declared or does not fit its schema, tells the model of such errors as tools would, and has as many turns as the
others.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rightcall.backends.request import Answer
from rightcall.capture.scenario_run import unguarded
from rightcall.errors import CallerError
from rightcall.types import Json


class Configuration(msgspec.Struct, frozen=True):
    """What stands between the model and the tools.

    - `parse`: calls are found in any format, also where none was asked for.
    - `repair`: they are put right where that is safe.
    - `guard`: by name; "none" tells the model nothing beside errors.
    - `grammar`: the server holds the model to the tools.
    """

    about: str
    parse: bool = True
    repair: bool = True
    guard: str = "none"
    grammar: bool = False

    def fields(self, mode: str) -> Json:
        """What a request says of it, where tools are otherwise offered in this `mode`."""
        return {"mode": "grammar" if self.grammar else mode, "repair": "safe" if self.repair else "off"}

    def read(self, answer: Answer) -> Answer:
        """The answer as this configuration sees it."""
        return answer if self.parse else unguarded(answer)


CONFIGURATIONS: dict[str, Configuration] = {
    "bare": Configuration("calls in the form asked for, as they stand", parse=False, repair=False),
    "+parse": Configuration("calls in any form, wherever they stand", repair=False),
    "+repair": Configuration("and safe repairs"),
    "+nudge": Configuration("and the model is told what was wrong, and what nearly was a call", guard="parse"),
    "+grammar": Configuration("and the server holds it to the tools", guard="parse", grammar=True),
    "full": Configuration("and the whole guard", guard="full", grammar=True),
}


def find_configurations(words: Iterable[str]) -> list[str]:
    """The names that are meant, each once, in their usual order: a `+` may be left out. Raises `CallerError`."""
    wanted = [word if word in CONFIGURATIONS else f"+{word}" for word in words if word]
    for word in wanted:
        if word not in CONFIGURATIONS:
            raise CallerError(f"no configuration {word.lstrip('+')!r:.80}; there are {', '.join(CONFIGURATIONS)}")
    return [name for name in CONFIGURATIONS if name in wanted] or list(CONFIGURATIONS)
