"""Names of declared tools in a text, as models write them:  functions.f:0   f"""

from __future__ import annotations

import re

from rightcall.parsing.markers import HOLES
from rightcall.tools.toolset import Toolset

name_at, names_in = re.compile(HOLES["name"]).match, re.compile(HOLES["name"]).findall


def declared(word: str, tools: Toolset | None) -> str:
    """The declared tool that a word names, maybe with a namespace before it and a number behind it, or ""."""
    name = word.partition(":")[0]
    names = (word, name, name.rpartition(".")[2])
    return next((name for name in names if tools is not None and name in tools), "")
