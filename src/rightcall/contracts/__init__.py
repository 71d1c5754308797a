"""The contract: what a model without native tools is told, and the ledger that keeps "done" honest.

`contract` itself is here, and what it needs is imported when it is called: `import rightcall` stays cheap, and the name
`rightcall.contracts` is the function whatever else is imported from this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rightcall.contracts.ledger import Ledger
    from rightcall.contracts.prompt import Contract
    from rightcall.declare.toolset import Tools
    from rightcall.formats.spec import Format


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

    `format` is the wire that the model is to write: our own protocol, or the format of a family of models, which are
    then shown the tools as they are used to. `compact` shortens all tools, or those named; a tool may also say so
    itself. `budget` is in tokens, counted by `count`, or else estimated as a token for four bytes; tools are shortened,
    dearest first, until the text fits. `schemas` says whether tools are described, which in mode `native` they are not
    unless asked for. `require_action` wants the reply to begin with a call. `examples` is text of your own. Raises
    `CallerError`.
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
