"""What servers and template families take as a history, as data.

    HISTORY_PROFILES["mistral"].ids  # "nine"

A profile says what is refused, not what is good: a history that its profile takes is sent as it is. `strict` is the
narrowest of those that take arguments as text, for a server of which nothing is known.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from rightcall.errors import CallerError

REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
_CHAT_FIELDS = frozenset("role content name tool_calls tool_call_id".split())


class HistoryProfile(msgspec.Struct, frozen=True, kw_only=True):
    """What one kind of server takes as the messages of a request.

    - `name`: what it is asked for by.
    - `who`: the servers and templates it stands for.
    - `ids`: "any" id that is not empty and not repeated, or "nine" letters and digits.
    - `arguments`: a call's arguments are JSON "text", or the "object" itself.
    - `alternates`: users and assistants take turns; two messages of one role in a row are refused.
    - `answers_first`: behind results an assistant speaks before a user does.
    - `system`: system messages may stand "anywhere", or there is one and it stands "first".
    - `developer`: the role of that name is known; else it is a system message.
    - `blank`: what stands for no text beside calls: "null", "empty" (a string), or "either".
    - `parts`: content may be a list of parts; else it is a string.
    - `result_parts`: that of a result too.
    - `reasoning`: the key that reasoning may go back under; empty where it is refused.
    - `needs_reasoning`: beside calls it must be there, and not be blank.
    - `one_voice`: beside calls there is text or reasoning, not both.
    - `fields`: the keys that a message may have; None where others are ignored.
    """

    name: str
    who: str
    ids: Literal["any", "nine"] = "any"
    arguments: Literal["text", "object"] = "text"
    alternates: bool = False
    answers_first: bool = False
    system: Literal["anywhere", "first"] = "anywhere"
    developer: bool = False
    blank: Literal["null", "empty", "either"] = "either"
    parts: bool = True
    result_parts: bool = False
    reasoning: str = ""
    needs_reasoning: bool = False
    one_voice: bool = False
    fields: frozenset[str] | None = None


_PROFILES = (
    HistoryProfile(
        name="openai",
        who="OpenAI, Azure, most hosted APIs",
        developer=True,
        result_parts=True,
        fields=_CHAT_FIELDS | {"refusal", "audio"},
    ),
    HistoryProfile(name="vllm", who="vLLM, SGLang", reasoning="reasoning_content"),
    HistoryProfile(
        name="llama_cpp", who="llama.cpp, llamafile, LM Studio", blank="empty", reasoning="reasoning_content"
    ),
    HistoryProfile(
        name="ollama",
        who="Ollama's own API",
        arguments="object",
        blank="empty",
        parts=False,
        reasoning="thinking",
    ),
    HistoryProfile(
        name="mistral",
        who="Mistral's API and templates",
        ids="nine",
        alternates=True,
        answers_first=True,
        system="first",
        blank="empty",
        fields=_CHAT_FIELDS,
    ),
    HistoryProfile(name="gemma", who="Gemma's templates", alternates=True, system="first", blank="empty"),
    HistoryProfile(name="llama3", who="Llama 3's templates", system="first", blank="empty", parts=False),
    HistoryProfile(
        name="deepseek",
        who="DeepSeek's API with thinking on",
        blank="either",
        reasoning="reasoning_content",
        needs_reasoning=True,
    ),
    HistoryProfile(
        name="kimi",
        who="Kimi's API with thinking on",
        blank="empty",
        reasoning="reasoning_content",
        needs_reasoning=True,
    ),
    HistoryProfile(name="gpt_oss", who="gpt-oss templates", reasoning="thinking", one_voice=True, blank="empty"),
    HistoryProfile(
        name="strict",
        who="any server that is not known",
        ids="nine",
        alternates=True,
        answers_first=True,
        system="first",
        blank="empty",
        parts=False,
        fields=_CHAT_FIELDS,
    ),
)
HISTORY_PROFILES: dict[str, HistoryProfile] = {profile.name: profile for profile in _PROFILES}


def history_profile(profile: str | HistoryProfile) -> HistoryProfile:
    """The profile of this name. Raises `CallerError` for a name that there is none of."""
    if isinstance(profile, HistoryProfile):
        return profile
    found = HISTORY_PROFILES.get(profile)
    if found is None:
        raise CallerError(f"no profile {profile!r} of a history; there are {', '.join(HISTORY_PROFILES)}")
    return found
