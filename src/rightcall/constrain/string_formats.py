"""What the common values of `format` look like, as patterns. JSON Schema does not assert them, and so a grammar does
not unless it is asked to (`formats=True`)."""

from __future__ import annotations

_DAY = r"(?:0[1-9]|[12][0-9]|3[01])"
_DATE = rf"[0-9]{{4}}-(?:(?:0[13578]|1[02])-{_DAY}|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HEX = "[0-9a-fA-F]"

FORMAT_PATTERNS: dict[str, str] = {
    "date": f"^{_DATE}$",
    "time": f"^{_CLOCK}$",
    "date-time": f"^{_DATE}T{_CLOCK}$",
    "duration": r"^P(?:[0-9]{1,9}W|[0-9]{1,9}D|T[0-9]{1,9}[HMS]|[0-9]{1,9}DT[0-9]{1,9}[HMS])$",
    "email": rf"^[A-Za-z0-9_%+-]{{1,32}}(?:\.[A-Za-z0-9_%+-]{{1,16}}){{0,3}}@{_LABEL}(?:\.{_LABEL}){{1,3}}$",
    "hostname": rf"^{_LABEL}(?:\.{_LABEL}){{0,5}}$",
    "ipv4": rf"^{_BYTE}(?:\.{_BYTE}){{3}}$",
    "ipv6": rf"^(?:{_HEX}{{1,4}}:){{7}}{_HEX}{{1,4}}$|^(?:{_HEX}{{1,4}}:){{1,6}}:{_HEX}{{1,4}}$|^::$|^::1$",
    "uri": r"^[A-Za-z][A-Za-z0-9+.-]{0,15}://[A-Za-z0-9._~%-]{1,253}(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~%@:&=+$,;!()*-]{0,64}){0,16}(?:\?[A-Za-z0-9._~%@:&=+$,;/-]{0,256})?$",
    "uuid": rf"^{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}$",
}
