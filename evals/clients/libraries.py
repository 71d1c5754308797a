"""Libraries, each in a small program in `programs/`: the loop of its guide, or its built-in loop."""

from __future__ import annotations

from clients.client import Client, Package, ToolUse, as_json, npm, pip

READS = ToolUse("read_file", {"path": "$FILE"})
EDITS = ToolUse("edit_file", {"path": "$FILE", "old": "$OLD", "new": "$NEW"})
_ENV = {"BASE": "$BASE", "MODEL": "$MODEL", "TASK": "$TASK", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
_SDKS = ("openai", "anthropic", "google-genai", "ollama")


def _python(
    name: str,
    api: str,
    package: Package,
    program: str,
    how: str = "",
    *,
    reads: ToolUse = READS,
    edits: ToolUse = EDITS,
    answers: ToolUse | None = None,
) -> Client:
    command = ("python", f"$PROGRAMS/{program}.py", how)
    return Client(name, api, package, command, reads=reads, edits=edits, env=_ENV, answers=answers)


def _node(name: str, api: str, package: Package, program: str, how: str = "") -> Client:
    return Client(name, api, package, ("node", f"$PROGRAMS/{program}.mjs", how), reads=READS, edits=EDITS, env=_ENV)


def _sdk(name: str, api: str, package: str, program: str, how: str = "") -> Client:
    """Return one of the providers' SDKs, which are installed in one folder."""
    names = (package, *[other for other in _SDKS if other != package])
    return _python(name, api, pip("sdks", *names), program, how)


_AGENTS = pip("agents", "openai-agents")
_PYDANTIC_AI = pip("pydantic-ai", "pydantic-ai-slim[openai,anthropic]")
_LANGCHAIN = pip("langchain", "langchain", "langchain-openai", "langchain-anthropic", "langchain-ollama")
_LITELLM = pip("litellm", "litellm[proxy]")  # without its proxy it cannot be imported
_AI_SDK = npm("aisdk", "ai", "@ai-sdk/openai-compatible", "@ai-sdk/openai", "@ai-sdk/anthropic")
_LANGCHAIN_JS = npm("langchain", "langchain", "@langchain/core", "@langchain/openai")

LLM = Client(
    "llm",
    "chat",
    pip("llm", "llm"),
    ("llm", "-m", "rc", "--key", "none", "--functions", "$PROGRAMS/llm_functions.py", "-n", "$TASK"),
    reads=READS,
    edits=EDITS,
    env={"LLM_USER_PATH": "$HOME/llm"},
    files={
        "$HOME/llm/extra-openai-models.yaml": as_json(  # JSON is YAML
            [{"model_id": "rc", "model_name": "$MODEL", "api_base": "$BASE/v1", "supports_tools": True}]
        )
    },
)

LIBRARIES = (
    _sdk("openai-py", "chat", "openai", "with_openai", "chat"),
    _sdk("openai-py-whole", "chat", "openai", "with_openai", "whole"),
    _sdk("openai-py-responses", "responses", "openai", "with_openai", "responses"),
    _sdk("anthropic-py", "messages", "anthropic", "with_anthropic", "stream"),
    _sdk("anthropic-py-runner", "messages", "anthropic", "with_anthropic", "runner"),
    _sdk("genai-py", "gemini", "google-genai", "with_genai"),
    _sdk("ollama-py", "ollama", "ollama", "with_ollama"),
    _node("openai-js", "chat", npm("openai", "openai"), "with_openai", "chat"),
    _node("openai-js-responses", "responses", npm("openai", "openai"), "with_openai", "responses"),
    _node("anthropic-js", "messages", npm("anthropic", "@anthropic-ai/sdk"), "with_anthropic"),
    _node("genai-js", "gemini", npm("genai", "@google/genai"), "with_genai"),
    _node("ollama-js", "ollama", npm("ollama", "ollama"), "with_ollama"),
    _node("ai-sdk", "chat", _AI_SDK, "with_ai_sdk", "compatible"),
    _node("ai-sdk-openai", "chat", _AI_SDK, "with_ai_sdk", "chat"),
    _node("ai-sdk-responses", "responses", _AI_SDK, "with_ai_sdk", "responses"),
    _node("ai-sdk-messages", "messages", _AI_SDK, "with_ai_sdk", "messages"),
    _python("langchain", "chat", _LANGCHAIN, "with_langchain", "chat"),
    _python("langchain-responses", "responses", _LANGCHAIN, "with_langchain", "responses"),
    _python("langchain-messages", "messages", _LANGCHAIN, "with_langchain", "messages"),
    _python("langchain-ollama", "ollama", _LANGCHAIN, "with_langchain", "ollama"),
    _node("langchain-js", "chat", _LANGCHAIN_JS, "with_langchain", "chat"),
    _python("pydantic-ai", "chat", _PYDANTIC_AI, "with_pydantic_ai", "chat"),
    _python("pydantic-ai-responses", "responses", _PYDANTIC_AI, "with_pydantic_ai", "responses"),
    _python("pydantic-ai-messages", "messages", _PYDANTIC_AI, "with_pydantic_ai", "messages"),
    _python("openai-agents", "chat", _AGENTS, "with_openai_agents", "chat"),
    _python("openai-agents-responses", "responses", _AGENTS, "with_openai_agents", "responses"),
    _python(
        "smolagents",
        "chat",
        pip("smolagents", "smolagents[openai]"),
        "with_smolagents",
        answers=ToolUse("final_answer", {"answer": "$ANSWER"}),
    ),
    _python(
        "instructor",
        "chat",
        pip("instructor", "instructor"),
        "with_instructor",
        reads=ToolUse("ReadFile", READS.arguments),
        edits=ToolUse("EditFile", EDITS.arguments),
    ),
    LLM,
    _python("litellm", "chat", _LITELLM, "with_litellm", "chat"),
    _python("litellm-messages", "messages", _LITELLM, "with_litellm", "messages"),
    _python("litellm-ollama", "ollama", _LITELLM, "with_litellm", "ollama"),
)
