"""Qwen3-Coder and related models, with values as bare text:
`<tool_call>\\n<function=f>\\n<parameter=k>\\nv\\n</parameter>\\n</function>\\n</tool_call>`"""

from rightcall.formats.spec import Format, Params, Special, replace
from rightcall.formats.turn_ends import CHATML_HEADER

_ENDS = (Special("<|im_end|>"), Special("<|endoftext|>"), CHATML_HEADER)

QWEN3_CODER = Format(
    "qwen3_coder",
    body=Params(
        open="<function={name}>\n",
        param="<parameter={key}>\n",
        value_close=("\n</parameter>\n", ""),
        close="</function>",
    ),
    call=(("<tool_call>\n", ""), ("\n</tool_call>", "")),
    between="\n",
    reasoning=("<think>\n", "\n</think>\n\n"),
    ends=_ENDS,
    tools="qwen3_coder",
    aliases=("qwen3_xml", "nemotron_v3", "qwen3.5", "qwen35", "nanbeige"),
    models="Qwen3-Coder, Qwen3.5, Nemotron 3, Nanbeige",
)
STEP3P5 = replace(QWEN3_CODER, name="step3p5", tools="hermes", aliases=("step3.5",), models="Step-3.5")
# Values are written inline; both layouts are read.
_INLINE = Params(
    open="<function={name}>\n",
    param=("<parameter={key}>", "<parameter={key}>\n"),
    value_close=("</parameter>\n", "\n</parameter>\n", ""),
    close="</function>",
)
MIMO = replace(
    QWEN3_CODER,
    name="mimo",
    body=_INLINE,
    reasoning=("<think>", "</think>"),
    models="MiMo, Naive N0.5",
)
SEED_OSS = replace(
    QWEN3_CODER,
    name="seed_oss",
    body=_INLINE,
    call=(("<seed:tool_call>\n", ""), ("\n</seed:tool_call>", "")),
    reasoning=("<seed:think>", "</seed:think>"),
    ends=(Special("<seed:eos>"), Special("<seed:bos>") + "assistant\n"),
    tools="pythonic",
    models="Seed-OSS",
)
ZAYA = replace(
    QWEN3_CODER,
    name="zaya",
    call=((Special("<zyphra_tool_call>") + "\n", ""), ("\n" + Special("</zyphra_tool_call>"), "")),
    aliases=("zaya_xml", "zyphra"),
    models="ZAYA1",
)
