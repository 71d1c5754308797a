"""A code fence, said once for everybody:  ```json5 title="call"\\n{...}\\n```

What stands behind the three backticks up to the end of their line is the info string: at most 64 characters, none of
them a backtick. It begins neither with a bracket nor with a quote or `<`: those begin what the fence would hold.
"""

from __future__ import annotations

import re

LABEL = r"[^`\s{\[<\"'][^`\n]{0,63}+"  # an info string that is there
INFO = rf"[ \t\r]{{0,8}}+(?:{LABEL})?+"  # one that may be missing
BEGIN = rf"```{INFO}\n"

begins_fence = re.compile(BEGIN).match


def unfence(text: str) -> str | None:
    """What stands inside the one code fence around a text, if there is one."""
    inner = text.strip()
    begin = begins_fence(inner)
    if begin is None or not inner.endswith("```") or len(inner) - 3 < begin.end():
        return None
    return inner[begin.end() : -3].rstrip(" \t").removesuffix("\n").removesuffix("\r")
