"""The classes of failure that users of tool calling report, as data.

    FAILURE_CLASSES["call_as_text"].title       "The call comes back as text"
    FAILURE_CLASSES["call_as_text"].line(url)   "rightcall serve --upstream http://..."

`number` is the rank by frequency of reports; two classes with one number were reported together and have different
cures. `threads` are public reports, as `owner/repository#number`.
"""

from __future__ import annotations

import shlex
from typing import Literal

import msgspec

Where = Literal["server", "model", "client"]
Cured = Literal["cured", "reported"]


class FailureClass(msgspec.Struct, frozen=True, kw_only=True):
    """One class of failure.

    - `slug`: its stable name.
    - `number`: its rank.
    - `title`, `what`: a name for people, and a description in a sentence.
    - `where`: what causes it: the server, the model or the client.
    - `part`: the module that cures it.
    - `cure`: how, in a sentence.
    - `flags`: the flags of `rightcall serve` that cure it, besides `--upstream`; None if the proxy does not cure it.
    - `outcome`: `cured`, or `reported` if only the server can cure it.
    - `threads`: public reports.
    """

    slug: str
    number: int
    title: str
    what: str
    where: Where = "server"
    part: str = "rightcall.serve"
    cure: str
    flags: tuple[str, ...] | None = ()
    outcome: Cured = "cured"
    threads: tuple[str, ...] = ()

    def line(self, upstream: str) -> str:
        """Return the command that cures it for this `upstream`; empty if the proxy does not cure it."""
        if self.flags is None:
            return ""
        return shlex.join(["rightcall", "serve", "--upstream", upstream, *self.flags])


def _threads(names: str) -> tuple[str, ...]:
    return tuple(names.split())


_LIST = (
    FailureClass(
        slug="call_as_text",
        number=1,
        title="The call comes back as text",
        what="The model wrote a call in its own format, and the server passed it on as content, without tool_calls.",
        cure="Calls in the text are read in every format, whichever parser the server was started with.",
        threads=_threads(
            "vllm-project/vllm#40911 vllm-project/vllm#39468 vllm-project/vllm#47903 ollama/ollama#11185 "
            "NousResearch/hermes-agent#87900 aaif-goose/goose#3748 continuedev/continue#12890 jundot/omlx#2565 "
            "anomalyco/opencode#1034 vllm-project/vllm#21571"
        ),
    ),
    FailureClass(
        slug="lost_in_stream",
        number=2,
        title="The stream loses what the whole answer has",
        what="Streamed, the arguments, the first piece or the second call are missing; whole, they are there.",
        cure="Tools are offered in the prompt, and the text is parsed by the proxy, independent of its chunks.",
        flags=("--mode", "text"),
        threads=_threads(
            "vllm-project/vllm#55082 vllm-project/vllm#48347 vllm-project/vllm#47901 vllm-project/vllm#44326 "
            "vllm-project/vllm#42683 sgl-project/sglang#37634 BerriAI/litellm#25321 BerriAI/litellm#25836"
        ),
    ),
    FailureClass(
        slug="broken_arguments",
        number=3,
        title="The arguments are no JSON",
        what="The arguments of a call are no JSON object in a text: cut, Python, fenced, or parsed already.",
        cure="They are repaired with a receipt; calls that cannot be repaired are requested again.",
        threads=_threads(
            "ggml-org/llama.cpp#13825 ggml-org/llama.cpp#14051 ggml-org/llama.cpp#16710 open-webui/open-webui#21983"
        ),
    ),
    FailureClass(
        slug="poisoned_history",
        number=4,
        title="One bad call poisons the session",
        what="A broken call that once got into the history makes the server refuse every later request.",
        part="rightcall.providers.history_sanitizer",
        cure="The history is repaired before each request; the client's copy is not changed.",
        threads=_threads(
            "MoonshotAI/kimi-cli#1171 MoonshotAI/kimi-cli#2165 vllm-project/vllm#43995 noonghunna/club-3090#1195 "
            "NVIDIA-NeMo/Gym#3474"
        ),
    ),
    FailureClass(
        slug="lost_reasoning",
        number=5,
        title="Reasoning is wanted back",
        what="The server refuses a history whose calls lack the reasoning or the signature that it sent with them.",
        cure="Fields that a server sent with its calls are stored by call id and restored where a client drops them.",
        threads=_threads(
            "continuedev/continue#10193 charmbracelet/crush#2696 mastra-ai/mastra#13635 langchain-ai/langchain#34166 "
            "langgenius/dify-official-plugins#2088 Gitlawb/openclaude#67 AstrBotDevs/AstrBot#9217"
        ),
    ),
    FailureClass(
        slug="schema_kills_grammar",
        number=6,
        title="One schema takes down every tool",
        what="A keyword in one tool's schema makes the server refuse the request, or drop the constraint silently.",
        cure="A refused constraint is requested in another mode, and the proxy enforces the whole schema.",
        threads=_threads(
            "firecrawl/firecrawl#4512 lmstudio-ai/lmstudio-bug-tracker#2193 QwenLM/qwen-code#10520 "
            "codefuturist/email-mcp#58 containers/kubernetes-mcp-server#758 ggml-org/llama.cpp#19051"
        ),
    ),
    FailureClass(
        slug="double_encoded",
        number=7,
        title="Nested JSON is encoded twice",
        what="An argument that is declared as an object or a list arrives as a text that holds one.",
        cure="It is decoded, with a receipt, where the schema requires it and the whole text is such a value.",
        threads=_threads(
            "anomalyco/opencode#8249 earendil-works/pi#9569 MoonshotAI/kimi-cli#2513 tashfeenahmed/freellmapi#193 "
            "coder/coder#28044"
        ),
    ),
    FailureClass(
        slug="wrong_types",
        number=8,
        title="Values have the wrong type",
        what='Numbers, booleans and null arrive as texts, or texts as numbers: "false" for false, 2134 for "02134".',
        cure="Values are converted by the schema, also through unions; a value that does not fit stays as it was.",
        threads=_threads(
            "vllm-project/vllm#36032 sgl-project/sglang#27640 ollama/ollama#12621 NVIDIA/TensorRT-LLM#12173 "
            "ml-explore/mlx-lm#1310 lablup/mlxcel#1336"
        ),
    ),
    FailureClass(
        slug="repeated_calls",
        number=9,
        title="The same call again and again",
        what="The model repeats one call, or a cycle of calls, without end.",
        where="model",
        part="rightcall.guard",
        cure="Repeats are counted; the model gets a message, then the call is refused.",
        flags=("--guard", "full"),
        threads=_threads(
            "anomalyco/opencode#28596 earendil-works/pi#9637 PrimeIntellect-ai/prime-agent#1326 HKUDS/nanobot#3077 "
            "charmbracelet/crush#2130"
        ),
    ),
    FailureClass(
        slug="bad_ids",
        number=10,
        title="Ids are missing, empty or duplicate",
        what="A call has no id, an empty one, one that is not text, one that changes, or the id of another call.",
        cure="Every call gets an id that is unique in its conversation; the server's ids are kept as well.",
        threads=_threads(
            "open-webui/open-webui#28570 continuedev/continue#12627 QwenLM/qwen-code#8382 "
            "NousResearch/hermes-agent#72766 anomalyco/opencode#4590 openai/openai-node#1946"
        ),
    ),
    FailureClass(
        slug="bad_index",
        number=11,
        title="Parallel calls run together",
        what="The index of streamed calls is missing, always 0 or changing, or a name is sent twice, so calls merge.",
        cure="Pieces are joined by id, index, position and completeness; the client gets strict deltas.",
        threads=_threads(
            "zed-industries/zed#42584 vercel/ai#7238 anomalyco/opencode#17902 danny-avila/LibreChat#13987 "
            "huggingface/smolagents#1958 openai/openai-python#3425 maximhq/bifrost#1829"
        ),
    ),
    FailureClass(
        slug="bad_translation",
        number=12,
        title="The answer breaks the rules of its dialect",
        what="Events or fields are missing, duplicate or out of order, mostly after a translation between two APIs.",
        cure="The answer is parsed leniently and rewritten as the strictest clients require.",
        threads=_threads(
            "BerriAI/litellm#25561 BerriAI/litellm#29286 BerriAI/litellm#30014 BerriAI/litellm#32357 "
            "openai/codex#10635 ggml-org/llama.cpp#20156 unslothai/unsloth#9121"
        ),
    ),
    FailureClass(
        slug="cut_but_run",
        number=13,
        title="A truncated call looks complete",
        what="An answer that reached max_tokens ends as if it were complete, and its truncated call may be run.",
        cure="A call is complete if its JSON is, whatever the finish reason; truncated calls are never passed on.",
        threads=_threads(
            "QwenLM/qwen-code#2021 ahwurm/localharness#77 can1357/oh-my-pi#1786 jaseci-labs/jac#6766 "
            "NousResearch/hermes-agent#74798"
        ),
    ),
    FailureClass(
        slug="think_tags",
        number=14,
        title="Think tags swallow the call",
        what="A call that is written in the reasoning is lost, or reasoning is in the content with its tags.",
        cure="Reasoning is separated from text; a call in it counts only if the turn has no other content.",
        threads=_threads(
            "vllm-project/vllm#55759 lmstudio-ai/lmstudio-bug-tracker#1592 InternLM/lmdeploy#4580 "
            "unslothai/unsloth#5704 waybarrios/vllm-mlx#168"
        ),
    ),
    FailureClass(
        slug="history_order",
        number=15,
        title="Histories are refused for their order",
        what="Results without calls, two turns of one role, null content: the server refuses what clients send.",
        part="rightcall.providers.history_sanitizer",
        cure="The history is repaired for the type of server before it is sent.",
        threads=_threads(
            "langchain-ai/langchain#33265 openclaw/openclaw#29220 mistralai/mistral-vibe#1006 "
            "ggml-org/llama.cpp#13178 lmstudio-ai/lmstudio-bug-tracker#842 huggingface/text-generation-inference#3198"
        ),
    ),
    FailureClass(
        slug="context_cut",
        number=16,
        title="The prompt is cut silently",
        what="A prompt that is longer than the server's context loses its beginning, with the tools, without an error.",
        part="rightcall.doctor",
        cure="It is reported: the server counts fewer tokens than were sent. Configure a larger context.",
        flags=None,
        outcome="reported",
        threads=_threads("ollama/ollama#18107 ollama/ollama#7987 haoxiang-xu/PuPu#129"),
    ),
    FailureClass(
        slug="oversized_result",
        number=17,
        title="A result is larger than the context",
        what="The result of one tool fills the context, and every request after it fails.",
        where="client",
        part="rightcall.dispatching",
        cure="`dispatch` limits the size of results and names the way to get the remainder.",
        flags=None,
        threads=_threads("charmbracelet/crush#3480 QwenLM/qwen-code#2439 NousResearch/hermes-agent#56059"),
    ),
    FailureClass(
        slug="wrong_names",
        number=18,
        title="The call names no tool",
        what="The name contains control tokens, lacks its prefix, is misspelled or is invented.",
        cure="Control tokens are removed, and the only matching tool is chosen; otherwise the model gets all names.",
        threads=_threads(
            "vllm-project/vllm#32587 vllm-project/vllm#35906 openai/openai-agents-python#1196 vercel/ai#2786 "
            "zed-industries/zed#29946 livekit/agents#6085"
        ),
    ),
    FailureClass(
        slug="wrong_parameters",
        number=19,
        title="Arguments have the wrong names",
        what="An argument has another name than in the schema.",
        where="model",
        part="rightcall.repairs",
        cure="The only matching parameter is chosen; otherwise the model gets the list of parameters.",
        flags=("--repair", "lenient"),
        threads=_threads("openclaw/openclaw#52164 openclaw/openclaw#57554 cortexkit/aft#148"),
    ),
    FailureClass(
        slug="tool_choice_ignored",
        number=20,
        title="tool_choice is ignored",
        what="A required call is missing, another tool than the named one is called, or there is a call despite none.",
        cure="The choice is enforced: by the prompt or a grammar, otherwise by a retry.",
        threads=_threads(
            "ollama/ollama#17921 vllm-project/vllm#54808 vllm-project/vllm#55080 vercel/ai#8992 "
            "pydantic/pydantic-ai#2799"
        ),
    ),
    FailureClass(
        slug="empty_arguments",
        number=21,
        title="Empty arguments are not an object",
        what='A call without arguments has "", null or no arguments where clients require "{}".',
        cure="Empty arguments become {} if the tool requires none.",
        threads=_threads(
            "vllm-project/vllm#19419 langchain-ai/langchain#27602 langchain-ai/langchain#34190 simonw/llm#1164 "
            "agno-agi/agno#10254 pydantic/pydantic-ai#822"
        ),
    ),
    FailureClass(
        slug="wrong_finish",
        number=22,
        title="The finish reason is wrong",
        what="An answer with calls ends with stop, twice or not at all, so that clients drop the calls or loop.",
        cure="Each answer ends once, with the reason that matches its content.",
        threads=_threads(
            "sgl-project/sglang#2877 BerriAI/litellm#12862 RayBytes/ChatMock#114 BerriAI/litellm#27139 "
            "ollama/ollama#7963"
        ),
    ),
    FailureClass(
        slug="announced_only",
        number=23,
        title="The call is announced but not made",
        what="The model announces a call and ends its turn without one.",
        where="model",
        part="rightcall.guard",
        cure="The model is asked once more.",
        flags=("--guard", "full"),
        threads=_threads("RooCodeInc/Roo-Code#10547 anthropics/claude-code#63880 OpenHands/software-agent-sdk#1896"),
    ),
    FailureClass(
        slug="escaped_text",
        number=24,
        title="Code arrives escaped",
        what="Line breaks and quotation marks in an argument are written as \\n and &quot;.",
        where="model",
        part="rightcall.repairs",
        cure="It stays as written, since it may be intended.",
        flags=None,
        threads=_threads("openclaw/openclaw#14452 cline/cline#7698 Kilo-Org/kilocode#4052"),
    ),
    FailureClass(
        slug="no_native_tools",
        number=25,
        title="The server does not support tools",
        what="It refuses the field, or drops it silently, so that the model never sees a tool.",
        cure="Tools are offered in the prompt, in the model's own format.",
        flags=("--mode", "text"),
        threads=_threads(
            "pydantic/pydantic-ai#2170 aaif-goose/goose#6690 aaif-goose/goose#8269 continuedev/continue#6723"
        ),
    ),
    FailureClass(
        slug="too_many_tools",
        number=26,
        title="Too many tools",
        what="The tools fill the context, and the model chooses badly among them.",
        where="client",
        part="rightcall.tools",
        cure="Offer fewer: `Toolset` picks them by name.",
        flags=None,
        threads=_threads("openai/codex#9266 anomalyco/opencode#8625 modelcontextprotocol/python-sdk#2619"),
    ),
    FailureClass(
        slug="refused_names",
        number=26,
        title="Names of tools are refused",
        what="A tool's name has a dot or is longer than 64 characters, which MCP allows but the server does not.",
        cure="The server gets a name that it accepts; the client sees the original name.",
        threads=_threads("openai/codex#8174 github/copilot-cli#1879 microsoft/vscode#243602"),
    ),
    FailureClass(
        slug="refused_fields",
        number=27,
        title="Fields of a request are refused",
        what='A field that clients send (strict, parallel_tool_calls, "tools": []) makes the server refuse requests.',
        cure="Fields that the server does not accept are left out.",
        threads=_threads(
            "open-webui/open-webui#26655 OpenCoworkAI/open-cowork#232 QuantumNous/new-api#2763 "
            "tensorzero/tensorzero#2805"
        ),
    ),
    FailureClass(
        slug="idle_stream",
        number=27,
        title="Streams stall or break off",
        what="No data arrives until a client or a proxy closes the connection, or the stream breaks off.",
        cure="Keep-alive data is sent, and a stream that broke off is completed or retried.",
        threads=_threads("maximhq/bifrost#5010 BerriAI/litellm-docs#646"),
    ),
    FailureClass(
        slug="refused_results",
        number=27,
        title="Results that are not plain text",
        what="A result that is a list of parts or an image is refused, or its content is lost.",
        part="rightcall.providers.history_sanitizer",
        cure="Results are converted to the form that the server accepts.",
        threads=_threads("zhukunpenglinyutong/jetbrains-cc-gui#984 anomalyco/opencode#28859 vllm-project/vllm#39614"),
    ),
)

FAILURE_CLASSES: dict[str, FailureClass] = {each.slug: each for each in _LIST}
