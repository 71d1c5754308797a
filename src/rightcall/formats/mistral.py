"""Mistral, before and since its eleventh tokenizer:
`[TOOL_CALLS] [{"name": "f", "arguments": {"x": 1}, "id": "123456789"}]`    `[TOOL_CALLS]f[ARGS]{"x": 1}`"""

from rightcall.formats.spec import Envelope, Format, NameThenJson, Special, replace

_CALLS = Special("[TOOL_CALLS]")
_ARGS = Special("[ARGS]")
_LIST = Envelope(wrap=("[", ", ", "]"))
_NAMED = NameThenJson(open=("{name}" + _ARGS, "{name}" + Special("[CALL_ID]") + "{id}" + _ARGS, "{name}"))

MISTRAL_V3 = Format(
    "mistral_v3",
    body=Envelope(wrap=("[", ", ", "]"), write_id="last"),
    call=(_CALLS + " ", ""),
    ends=(Special("</s>"),),
    tools="mistral",
    aliases=("mistral_v7", "nemo"),
    models="Mistral 7B v0.3, Nemo, Large 2407",
)
MISTRAL_V11 = Format(
    "mistral_v11",
    body=(_NAMED, _LIST),
    call=(_CALLS, ""),
    reasoning=(Special("[THINK]"), Special("[/THINK]")),
    ends=(Special("</s>"),),
    tools="mistral",
    aliases=("mistral_v13", "devstral", "magistral"),
    models="Mistral Small 3.x, Devstral, Magistral",
)
MINISTRAL3 = replace(MISTRAL_V11, name="ministral3", models="Ministral 3")
MISTRAL = replace(
    MISTRAL_V11,
    name="mistral",
    body=(_LIST, _NAMED),
    models="any Mistral: the layout is told by what follows the marker",
)
