"""Tell a model which tools there are and how to call them (`contract`), and keep its list of deliverables.

The names that `contract` needs are imported when it is called: `import rightcall` stays cheap."""

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
    """Write the prompt text that lists tools and explains how to call them.

    Returns a `Contract`: the `text` for the prompt, `stats`, and the `tools` that may then be called.

    - `tools`: the tools to list, as in `parse`. They are sorted by name, so that the same tools give the same prompt.
    - `mode`: "text" for a model without a tool channel; "native" where the API is sent the tools, and the text adds
      what the API does not say.
    - `format`: the format that the model is to write: our own protocol, or the format of a family of models, which are
      then shown the tools as in their training.
    - `require_action`: the reply must begin with a call.
    - `examples`: text of the caller, inserted unchanged.
    - `compact`: list all tools in one line each, or the named ones; a tool may also have `compact` set itself.
    - `budget`: the most tokens. Tools are shortened, the longest first, until the text fits; `stats.fits` says whether
      it does.
    - `count`: counts the tokens of a text; by default one token for four bytes.
    - `schemas`: whether tools are described; None: in mode "text" they are.
    - `ledger`: the deliverables that must be finished before "done" is accepted; the ledger is added as a tool.
    - `done`: the text that the model writes in the block that says it is done.

    Raises `CallerError`."""
    from rightcall.contracts.prompt import ContractOptions, write_contract

    options = ContractOptions(
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
    return write_contract(tools, options)
