"""The contract: what a model without native tools is told, and the ledger that keeps "done" honest.

`contract` itself is here, and what it needs is imported when it is called: `import rightcall` stays cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rightcall.contracts.ledger import Ledger
    from rightcall.contracts.prompt import Contract
    from rightcall.formats.spec import Format
    from rightcall.tools.toolset import Tools


def contract(
    tools: Tools,
    *,
    mode: Literal["text", "native"] = "text",
    format: str | Format = "contract",
    require_action: bool = False,
    examples: str = "",
    compact: bool | Iterable[str] = False,
    budget: int | None = None,
    count: Callable[[str], int] | None = None,
    schemas: bool | None = None,
    ledger: Ledger | None = None,
    done: str = "##DONE##",
) -> Contract:
    """What to tell a model about these tools: `text` for the prompt, `stats`, and the `tools` that may then be called.

    - `tools`: what may be called, as in `parse`. They are told in the order of their names, so that the same tools are
      the same prompt.
    - `mode`: "text" for a model without a tool channel; "native" where the API is sent the tools, and the text says the
      rest.
    - `format`: the wire that the model is to write: our own protocol, or the format of a family of models, which are
      then shown the tools as they are used to.
    - `require_action`: the reply must begin with a call.
    - `examples`: text of your own, put in as it is.
    - `compact`: tell all tools in one line each, or those named; a tool may also say so itself.
    - `budget`: tokens. Tools are shortened, dearest first, until the text fits; `stats.fits` says whether it does.
    - `count`: counts the tokens of a text; one for four bytes unless given.
    - `schemas`: whether tools are described; None: in mode "text" they are.
    - `ledger`: what must be delivered before "done" counts; it becomes a tool.
    - `done`: what the model is to write in the block that says it is done.

    Raises `CallerError`.
    """
    from rightcall.contracts.prompt import Wanted, write

    wanted = Wanted(
        mode=mode,
        format=format,
        require_action=require_action,
        examples=examples,
        compact=compact,
        budget=budget,
        count=count,
        schemas=schemas,
        ledger=ledger,
        done=done,
    )
    return write(tools, wanted)
