"""Agents for the terminal, each headless and with leave to edit."""

from __future__ import annotations

from dataclasses import replace

from clients.client import Client, ToolUse, as_json, npm

_OLD_NEW = {"old_string": "$OLD", "new_string": "$NEW"}

CLAUDE = Client(
    "claude",
    "messages",
    npm("claude", "@anthropic-ai/claude-code"),
    ("claude", "-p", "$TASK", "--model", "$MODEL", "--permission-mode", "acceptEdits"),
    reads=ToolUse("Read", {"file_path": "$FILE"}),
    edits=ToolUse("Edit", {"file_path": "$FILE", **_OLD_NEW}),
    env={
        "ANTHROPIC_BASE_URL": "$BASE",
        "ANTHROPIC_API_KEY": "sk-none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "2",
    },
)

_CODEX_SERVER = (
    '{name="rc",base_url="$BASE/v1",wire_api="responses",env_key="RC_KEY",request_max_retries=2,stream_max_retries=2}'
)
CODEX = Client(
    "codex",
    "responses",
    npm("codex", "@openai/codex"),
    (
        *("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-C", "$WORK"),
        *("-m", "$MODEL", "-c", "model_provider=rc", "-c", f"model_providers.rc={_CODEX_SERVER}"),
        *("-c", "analytics.enabled=false", "$TASK"),
    ),
    reads=ToolUse("exec_command", {"cmd": "cat $FILE"}),
    edits=ToolUse("exec_command", {"cmd": "sed -i s/$OLD/$NEW/ $FILE"}),
    env={"RC_KEY": "none"},
)

COPILOT = Client(
    "copilot",
    "chat",
    npm("copilot", "@github/copilot"),
    ("copilot", "-p", "$TASK", "--allow-all-tools"),
    reads=ToolUse("view", {"path": "$FILE"}),
    edits=ToolUse("edit", {"path": "$FILE", "old_str": "$OLD", "new_str": "$NEW"}),
    env={
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_WIRE_API": "completions",
        "COPILOT_PROVIDER_BASE_URL": "$BASE/v1",
        "COPILOT_PROVIDER_API_KEY": "none",
        "COPILOT_MODEL": "$MODEL",
    },
)
COPILOT_RESPONSES = replace(
    COPILOT,
    name="copilot-responses",
    api="responses",
    env={**COPILOT.env, "COPILOT_PROVIDER_WIRE_API": "responses"},
)
COPILOT_MESSAGES = replace(
    COPILOT,
    name="copilot-messages",
    api="messages",
    env={**COPILOT.env, "COPILOT_PROVIDER_TYPE": "anthropic", "COPILOT_PROVIDER_BASE_URL": "$BASE"},
)


def _opencode(name: str, api: str, speaks: str) -> Client:
    server = {"npm": speaks, "options": {"baseURL": "$BASE/v1", "apiKey": "none"}, "models": {"$MODEL": {}}}
    settings = {"model": "rc/$MODEL", "small_model": "rc/$MODEL", "autoupdate": False, "share": "disabled"}
    return Client(
        name,
        api,
        npm("opencode", "opencode-ai"),
        ("sh", "-c", "set -f; exec opencode run $ASKED"),  # it puts words with blanks into quotes
        reads=ToolUse("read", {"filePath": "$FILE"}),
        edits=ToolUse("edit", {"filePath": "$FILE", "oldString": "$OLD", "newString": "$NEW"}),
        env={"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1", "ASKED": "$TASK"},
        files={"$WORK/opencode.json": as_json({**settings, "provider": {"rc": server}})},
    )


OPENCODE = _opencode("opencode", "chat", "@ai-sdk/openai-compatible")
OPENCODE_RESPONSES = _opencode("opencode-responses", "responses", "@ai-sdk/openai")
OPENCODE_MESSAGES = _opencode("opencode-messages", "messages", "@ai-sdk/anthropic")

QWEN = Client(
    "qwen",
    "chat",
    npm("qwen", "@qwen-code/qwen-code"),
    ("qwen", "--auth-type", "openai", "--approval-mode", "yolo", "-p", "$TASK"),
    reads=ToolUse("read_file", {"file_path": "$FILE"}),
    edits=ToolUse("edit", {"file_path": "$FILE", **_OLD_NEW}),
    env={"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": "$BASE/v1", "OPENAI_MODEL": "$MODEL"},
    files={
        "$HOME/.qwen/settings.json": as_json(
            {"privacy": {"usageStatisticsEnabled": False}, "general": {"disableAutoUpdate": True}}
        )
    },
)

GEMINI = Client(
    "gemini",
    "gemini",
    npm("gemini", "@google/gemini-cli"),
    ("gemini", "-m", "$MODEL", "--approval-mode", "yolo", "-p", "$TASK"),
    reads=ToolUse("read_file", {"file_path": "$FILE"}),
    edits=ToolUse("replace", {"file_path": "$FILE", "instruction": "Change the word.", **_OLD_NEW}),
    env={"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": "$BASE", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
    files={
        "$HOME/.gemini/settings.json": as_json(
            {
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "privacy": {"usageStatisticsEnabled": False},
                "general": {"disableAutoUpdate": True},
            }
        )
    },
)

CLINE = Client(
    "cline",
    "chat",
    npm("cline", "cline"),
    ("cline", "--retries", "2", "-P", "openai-compatible", "-m", "$MODEL", "-k", "none", "$TASK"),
    reads=ToolUse("read_files", {"files": [{"path": "$FILE"}]}),
    edits=ToolUse("editor", {"path": "$FILE", "old_text": "$OLD", "new_text": "$NEW"}),
    env={"CLINE_TELEMETRY_DISABLED": "1"},
    before=("cline", "auth", "openai-compatible", "-k", "none", "-m", "$MODEL", "--baseurl", "$BASE/v1"),
)

CONTINUE = Client(
    "continue",
    "chat",
    npm("continue", "@continuedev/cli"),
    ("cn", "-p", "--config", "$HOME/continue.yaml", "--auto", "$TASK"),
    reads=ToolUse("Read", {"filepath": "$FILE"}),
    edits=ToolUse("Edit", {"file_path": "$FILE", **_OLD_NEW}),
    env={"CONTINUE_TELEMETRY_ENABLED": "0"},
    skips=("leaks_mistral",),
    files={
        "$HOME/continue.yaml": as_json(  # JSON is YAML
            {
                "name": "rc",
                "version": "1.0.0",
                "schema": "v1",
                "models": [
                    {
                        "name": "rc",
                        "provider": "openai",
                        "model": "$MODEL",
                        "apiBase": "$BASE/v1",
                        "apiKey": "none",
                        "roles": ["chat"],
                        "capabilities": ["tool_use"],
                    }
                ],
            }
        )
    },
)

_FREE = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
PI = Client(
    "pi",
    "chat",
    npm("pi", "@mariozechner/pi-coding-agent"),
    ("pi", "-p", "--provider", "rc", "--model", "$MODEL", "$TASK"),
    reads=ToolUse("read", {"path": "$FILE"}),
    edits=ToolUse("edit", {"path": "$FILE", "edits": [{"oldText": "$OLD", "newText": "$NEW"}]}),
    env={"RC_KEY": "none", "PI_OFFLINE": "1"},
    files={
        "$HOME/.pi/agent/models.json": as_json(
            {
                "providers": {
                    "rc": {
                        "baseUrl": "$BASE/v1",
                        "api": "openai-completions",
                        "apiKey": "RC_KEY",
                        "models": [
                            {
                                "id": "$MODEL",
                                "name": "rc",
                                "reasoning": False,
                                "input": ["text"],
                                "contextWindow": 128_000,
                                "maxTokens": 32_000,
                                "cost": _FREE,
                            }
                        ],
                    }
                }
            }
        )
    },
)

AGENTS = (
    *(CLAUDE, CODEX, COPILOT, COPILOT_RESPONSES, COPILOT_MESSAGES, OPENCODE, OPENCODE_RESPONSES, OPENCODE_MESSAGES),
    *(QWEN, GEMINI, CLINE, CONTINUE, PI),
)
