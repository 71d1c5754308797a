"""Every wire format, by name, and what one is made of: markers, and a body that says how arguments are written.

    find("qwen3_coder")  # a name, an alias or a `Format`
    replace(find("hermes"), name="mine", call=("<call>", "</call>"))
    register(Format.from_toml(text))  # one of your own: `auto` and `format="mine"` know it

A format is data: reading, writing, grammars and prompts all go by it.
"""

from __future__ import annotations

from rightcall.errors import BadFormat
from rightcall.formats.builtin import ALIASES, FORMATS, NAMED_ONLY
from rightcall.formats.registered import find, known_formats, register, unregister
from rightcall.formats.spec import (
    Braced,
    Channels,
    Envelope,
    Format,
    NameThenJson,
    Params,
    Protocol,
    Pythonic,
    Special,
    TsCall,
    replace,
)

__all__ = [
    "ALIASES",
    "FORMATS",
    "NAMED_ONLY",
    "Braced",
    "Channels",
    "Envelope",
    "Format",
    "NameThenJson",
    "Params",
    "Protocol",
    "Pythonic",
    "Special",
    "TsCall",
    "known_formats",
    "discover",
    "find",
    "register",
    "replace",
    "unregister",
]


def discover() -> list[BadFormat]:
    """Registers the formats of your own that are in folders and in installed packages, as the command does.

    Folders: those that the variable RIGHTCALL_FORMATS lists, `.rightcall/formats` of the project, `rightcall/formats`
    of your configuration. Packages: the entry points `rightcall.formats`. Gives what cannot be used, and why; nothing
    is raised, and the others are registered.
    """
    from rightcall.storage.own_formats import register_found

    return register_found()
