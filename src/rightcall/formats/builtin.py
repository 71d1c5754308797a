"""Every built-in wire format, by name and alias."""

from __future__ import annotations

from rightcall.formats.apertus import APERTUS
from rightcall.formats.cohere import COHERE_COMMAND3, COHERE_COMMAND4, COHERE_COMMAND5, COMMAND_R_PLUS
from rightcall.formats.contract_format import CONTRACT
from rightcall.formats.deepseek import DEEPSEEK_V3, DEEPSEEK_V31
from rightcall.formats.deepseek_dsml import DEEPSEEK_V4, DEEPSEEK_V32, DEEPSEEK_V41
from rightcall.formats.dots import DOTS
from rightcall.formats.functionary import FUNCTIONARY_V2, FUNCTIONARY_V31, FUNCTIONARY_V32
from rightcall.formats.gemma import FUNCTIONGEMMA, GEMMA4
from rightcall.formats.generic import FORCED_CHOICE, GENERIC_JSON, XLAM
from rightcall.formats.gigachat import GIGACHAT3, GIGACHAT31, GIGACHAT35
from rightcall.formats.glm import GLM45, LING3, POOLSIDE_V1
from rightcall.formats.glm_kin import IQUEST, XING4
from rightcall.formats.granite import GRANITE3, GRANITE4, GRANITE_20B_FC
from rightcall.formats.harmony import HARMONY
from rightcall.formats.hermes import ERNIE45, HERMES, INTERNLM2, REKA_EDGE
from rightcall.formats.hunyuan import HUNYUAN_DENSE, HY_V3, HY_V4
from rightcall.formats.ifm import K2_HORIZON
from rightcall.formats.inkling import INKLING
from rightcall.formats.json_lists import APRIEL, HUNYUAN_A13B, JAMBA, MINIMAX_M1
from rightcall.formats.kimi import KIMI_K2, KIMI_K3
from rightcall.formats.liquid import LFM2
from rightcall.formats.llama import LLAMA3_JSON, LLAMA4_PYTHONIC, PYTHONIC
from rightcall.formats.longcat import LONGCAT
from rightcall.formats.minicpm import MINICPM3, MINICPM5
from rightcall.formats.minimax import MINIMAX_M2, MINIMAX_M3
from rightcall.formats.mirothinker import MIROTHINKER
from rightcall.formats.mistral import MINISTRAL3, MISTRAL, MISTRAL_V3, MISTRAL_V11
from rightcall.formats.muse import MUSE
from rightcall.formats.nemotron import NEMOTRON_V2
from rightcall.formats.olmo import OLMO3
from rightcall.formats.pangu import PANGU
from rightcall.formats.phi import FIREFUNCTION_V2, PHI4_MINI
from rightcall.formats.plamo import PLAMO3
from rightcall.formats.prompted import FUNCTION_LINES, INVOKE, QWEN_AGENT, REACT, TOOL_CODE
from rightcall.formats.qwen3_coder import MIMO, QWEN3_CODER, SEED_OSS, STEP3P5, ZAYA
from rightcall.formats.qwen25_coder import QWEN25_CODER
from rightcall.formats.solar import SOLAR_OPEN, SOLAR_OPEN2
from rightcall.formats.spec import Format
from rightcall.formats.step import STEP3

FORMATS: dict[str, Format] = {
    "hermes": HERMES,
    "granite4": GRANITE4,
    "ernie45": ERNIE45,
    "longcat": LONGCAT,
    "reka_edge": REKA_EDGE,
    "forced_choice": FORCED_CHOICE,
    "qwen3_coder": QWEN3_CODER,
    "step3p5": STEP3P5,
    "seed_oss": SEED_OSS,
    "contract": CONTRACT,
    "glm45": GLM45,
    "ling3": LING3,
    "poolside_v1": POOLSIDE_V1,
    "hy_v3": HY_V3,
    "hunyuan_a13b": HUNYUAN_A13B,
    "jamba": JAMBA,
    "apriel": APRIEL,
    "minimax_m1": MINIMAX_M1,
    "minimax_m2": MINIMAX_M2,
    "minimax_m3": MINIMAX_M3,
    "deepseek_v3": DEEPSEEK_V3,
    "deepseek_v31": DEEPSEEK_V31,
    "deepseek_v32": DEEPSEEK_V32,
    "deepseek_v4": DEEPSEEK_V4,
    "llama4_pythonic": LLAMA4_PYTHONIC,
    "llama3_json": LLAMA3_JSON,
    "pythonic": PYTHONIC,
    "olmo3": OLMO3,
    "lfm2": LFM2,
    "mistral": MISTRAL,
    "mistral_v3": MISTRAL_V3,
    "mistral_v11": MISTRAL_V11,
    "ministral3": MINISTRAL3,
    "kimi_k2": KIMI_K2,
    "kimi_k3": KIMI_K3,
    "harmony": HARMONY,
    "cohere_command3": COHERE_COMMAND3,
    "cohere_command4": COHERE_COMMAND4,
    "command_r_plus": COMMAND_R_PLUS,
    "granite3": GRANITE3,
    "granite_20b_fc": GRANITE_20B_FC,
    "phi4_mini": PHI4_MINI,
    "firefunction_v2": FIREFUNCTION_V2,
    "functionary_v2": FUNCTIONARY_V2,
    "functionary_v31": FUNCTIONARY_V31,
    "functionary_v32": FUNCTIONARY_V32,
    "internlm2": INTERNLM2,
    "generic_json": GENERIC_JSON,
    "functiongemma": FUNCTIONGEMMA,
    "gemma4": GEMMA4,
    "step3": STEP3,
    "apertus": APERTUS,
    "nemotron_v2": NEMOTRON_V2,
    "gigachat31": GIGACHAT31,
    "gigachat3": GIGACHAT3,
    "dots": DOTS,
    "minicpm3": MINICPM3,
    "minicpm5": MINICPM5,
    "muse": MUSE,
    "inkling": INKLING,
    "solar_open": SOLAR_OPEN,
    "solar_open2": SOLAR_OPEN2,
    "xlam": XLAM,
    "zaya": ZAYA,
    "mimo": MIMO,
    "hy_v4": HY_V4,
    "hunyuan_dense": HUNYUAN_DENSE,
    "iquest": IQUEST,
    "xing4": XING4,
    "k2_horizon": K2_HORIZON,
    "deepseek_v41": DEEPSEEK_V41,
    "gigachat35": GIGACHAT35,
    "plamo3": PLAMO3,
    "pangu": PANGU,
    "cohere_command5": COHERE_COMMAND5,
    "mirothinker": MIROTHINKER,
    "react": REACT,
    "invoke": INVOKE,
    "tool_code": TOOL_CODE,
    "function_lines": FUNCTION_LINES,
    "qwen_agent": QWEN_AGENT,
    "qwen25_coder": QWEN25_CODER,
}
# Prose and code look like these, so `auto` never takes them up: it leaves a note that something looks like a call.
NAMED_ONLY: frozenset[str] = frozenset({"react", "invoke", "tool_code", "function_lines", "qwen_agent", "qwen25_coder"})
ALIASES: dict[str, str] = {alias: name for name, format in FORMATS.items() for alias in format.aliases}
