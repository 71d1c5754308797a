"""All wire formats by name, and the types that define one: markers, and a body that defines the syntax of arguments.

    find("qwen3_coder")  # a name, an alias or a `Format`
    replace(find("hermes"), name="mine", call=("<call>", "</call>"))
    register(Format.from_toml(text))  # a format of your own: `auto` and `format="mine"` know it

A format is data that parsing, rendering, grammars and prompts share.
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
    """Register the user's formats in folders and installed packages, as the command line does.

    Folders: those in the variable RIGHTCALL_FORMATS, `.rightcall/formats` of the project, `rightcall/formats` of the
    user configuration. Packages: the entry points `rightcall.formats`. Returns the errors of unusable formats; nothing
    is raised, and the others are registered.
    """
    from rightcall.storage.own_formats import register_found

    return register_found()
