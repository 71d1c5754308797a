"""The fields to add to a request, per server, so that the server enforces a grammar.

    grammar(tools, choice="required").for_server("llama.cpp")  ->  {"grammar": "root ::= ..."}

Where calls are optional, llama.cpp waits for the text that begins one (`grammar_lazy`). Servers that hide special
tokens are asked not to, since calls are made of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from rightcall.constrain.gbnf import emit_gbnf_with_limits
from rightcall.constrain.intersect import Relaxation
from rightcall.constrain.json_schema import call_schema, project
from rightcall.constrain.structural_tag import emit_structural_tag_with_limits
from rightcall.errors import CallerError, GrammarCompileError
from rightcall.types import Json

if TYPE_CHECKING:
    from rightcall.constrain.grammars import Grammar

Made = tuple[Json, tuple[Relaxation, ...]]
_FREE = Relaxation("", "", "choice", "any text: this server has no option to forbid calls")
_WORD = 1  # llama.cpp's number for a trigger that is a text


def fragment(grammar: Grammar, server: str) -> Json:
    """Return the fields to add to a request so that this server enforces the grammar. Raises `CallerError` for an
    unknown server, `GrammarCompileError` for a grammar that it does not take."""
    return fragment_and_limits(grammar, server)[0]


def fragment_and_limits(grammar: Grammar, server: str) -> Made:
    """Return the fields to add to a request so that this server enforces the grammar, and the constraints that they do
    not enforce. Raises `CallerError` for an unknown server, `GrammarCompileError` for a grammar that it does not
    take."""
    make = SERVERS.get(server)
    if make is None:
        raise CallerError(f"there is no server {server!r}; name one of {', '.join(SERVERS)}")
    fields, limits = make(grammar)
    return fields, tuple(dict.fromkeys([*grammar.relaxations, *limits]))


def _llama_cpp_fields(grammar: Grammar) -> Made:
    """Return the fields for llama.cpp, and the constraints that they lose: `grammar`, as GBNF. If calls are optional
    and have an opener, that is the grammar of the calls alone, with `grammar_lazy`, `grammar_triggers` and, if it has
    special tokens, `preserved_tokens`."""
    if grammar.choice != "auto" or not grammar.lazy:
        text, limits = emit_gbnf_with_limits(grammar)
        return {"grammar": text}, limits
    triggers = [{"type": _WORD, "value": text} for text in grammar.triggers]
    text, limits = emit_gbnf_with_limits(grammar.begun())
    fields: Json = {"grammar": text, "grammar_lazy": True, "grammar_triggers": triggers}
    tokens = grammar.specials
    return fields | ({"preserved_tokens": list(tokens)} if tokens else {}), limits


def _vllm_fields(grammar: Grammar) -> Made:
    """Return the fields for vLLM, and the constraints that they lose: a structural tag as JSON text in
    `structured_outputs`, and `skip_special_tokens`, which is False. For the choice "none" there is only
    `skip_special_tokens`, and it is reported that calls are not forbidden."""
    if grammar.choice == "none":
        return {"skip_special_tokens": False}, (_FREE,)
    tag, limits = emit_structural_tag_with_limits(grammar)
    return {
        "structured_outputs": {"structural_tag": json.dumps(tag, ensure_ascii=False)},
        "skip_special_tokens": False,
    }, limits


def _sglang_fields(grammar: Grammar) -> Made:
    """Return the fields for SGLang, and the constraints that they lose: a structural tag as `response_format`, and
    `skip_special_tokens`, which is False. For the choice "none" there is only `skip_special_tokens`, and it is reported
    that calls are not forbidden."""
    if grammar.choice == "none":
        return {"skip_special_tokens": False}, (_FREE,)
    tag, limits = emit_structural_tag_with_limits(grammar)
    return {"response_format": tag, "skip_special_tokens": False}, limits


def _ollama_fields(grammar: Grammar) -> Made:
    """Return the fields for Ollama, and the constraints that they lose: a JSON Schema for the whole reply, which is
    then bare JSON. For the choice "none" there are no fields, and it is reported that calls are not forbidden. Raises
    `GrammarCompileError` for "auto", since only a required call can be enforced."""
    if grammar.choice == "auto":
        raise GrammarCompileError("ollama takes no grammar for calls that are optional; ask for choice='required'")
    if grammar.choice == "none":
        return {}, (_FREE,)
    schema, limits = call_schema(grammar, "ollama")
    return {"format": schema}, limits


def _openai_fields(grammar: Grammar) -> Made:
    """Return the fields for OpenAI, and the constraints that they lose: all tools that are not omitted, as strict
    tools, the tool choice, also "none", and whether calls may be parallel."""
    tools: list[Json] = []
    limits: list[Relaxation] = []
    names = grammar.tools.wire_names("chat")
    for name in grammar.names:
        tool = grammar.tools.get(name)
        assert tool is not None
        schema, made = project(grammar.tools.schema(name) or {}, "openai", name, formats=grammar.options.formats)
        limits += made
        function = {"name": names[name], "description": tool.description, "parameters": schema, "strict": True}
        tools.append({"type": "function", "function": function})
    choice: str | Json = grammar.choice
    if choice not in ("auto", "required", "none"):
        choice = {"type": "function", "function": {"name": names[grammar.choice]}}
    return {"tools": tools, "tool_choice": choice, "parallel_tool_calls": grammar.parallel}, tuple(limits)


def _anthropic_fields(grammar: Grammar) -> Made:
    """Return the fields for Anthropic, and the constraints that they lose: all tools that are not omitted, as strict
    tools, and the tool choice, which also says, except for "none", whether calls may be parallel."""
    tools: list[Json] = []
    limits: list[Relaxation] = []
    names = grammar.tools.wire_names("messages")
    for name in grammar.names:
        tool = grammar.tools.get(name)
        assert tool is not None
        schema, made = project(grammar.tools.schema(name) or {}, "anthropic", name, formats=grammar.options.formats)
        limits += made
        tools.append(
            {
                "name": names[name],
                "description": tool.description,
                "input_schema": {"type": "object", **schema},
                "strict": True,
            }
        )
    kind = {"auto": "auto", "required": "any", "none": "none"}.get(grammar.choice, "tool")
    choice: Json = {"type": kind} | ({"name": names[grammar.choice]} if kind == "tool" else {})
    if kind != "none":
        choice["disable_parallel_tool_use"] = not grammar.parallel
    return {"tools": tools, "tool_choice": choice}, tuple(limits)


SERVERS: dict[str, Callable[[Grammar], Made]] = {
    "llama.cpp": _llama_cpp_fields,
    "vllm": _vllm_fields,
    "sglang": _sglang_fields,
    "ollama": _ollama_fields,
    "openai": _openai_fields,
    "anthropic": _anthropic_fields,
}
