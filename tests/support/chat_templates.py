"""Small chat templates of our own, in the style of model families, and GGUF files to keep them in."""

import struct
from typing import Any

HERMES = """
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') }}
{%- for call in message.tool_calls or [] %}
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson }}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}
"""

QWEN3_CODER = """
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\\n<function=' + call.function.name + '>\\n' }}
{%- for key, value in call.function.arguments | items %}
{{- '<parameter=' + key + '>\\n' }}{{ value if value is string else value | tojson }}{{ '\\n</parameter>\\n' }}
{%- endfor %}
{{- '</function>\\n</tool_call>\\n' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}
"""

# It rejects ids that are not nine characters long, and adds a token that must be defined.
MISTRAL = """
{{- bos_token }}
{%- for message in messages %}
{%- if message.role == 'user' %}{{ '[INST]' + message.content + '[/INST]' }}
{%- elif message.tool_calls %}
{{- '[TOOL_CALLS][' }}
{%- for call in message.tool_calls %}
{%- if call.id | length != 9 %}{{ raise_exception('ids have nine characters, not ' + call.id) }}{% endif %}
{{- '{"name": "' + call.function.name + '", "arguments": ' + call.function.arguments | tojson }}
{{- ', "id": "' + call.id + '"}' }}{{ ', ' if not loop.last }}
{%- endfor %}
{{- ']' + eos_token }}
{%- endif %}
{%- endfor %}
"""

# One call at a time, and the date in its prompt.
LLAMA3 = """
{{- bos_token + '<|start_header_id|>system<|end_header_id|>\\n\\n' + strftime_now('%d %b %Y') + '<|eot_id|>' }}
{%- for message in messages %}
{{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' }}
{%- if message.tool_calls %}
{%- if message.tool_calls | length != 1 %}{{ raise_exception('one call at a time') }}{% endif %}
{%- set call = message.tool_calls[0].function %}
{{- '{"name": "' + call.name + '", "parameters": ' }}{{ call.arguments | tojson }}{{ '}' }}
{%- else %}{{ message.content }}{% endif %}
{{- '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}
"""

# Its generation prompt differs from the text of the finished turn.
GLM = """
{%- for message in messages %}
{{- '<|' + message.role + '|>\\n' }}
{%- if message.role == 'assistant' %}{{ '<think></think>' }}{% endif %}
{{- message.content or '' }}
{%- for call in message.tool_calls or [] %}
{{- '\\n<tool_call>' + call.function.name + '\\n' }}
{%- for key, value in call.function.arguments.items() %}
{{- '<arg_key>' + key + '</arg_key>\\n<arg_value>' }}
{{- value if value is string else value | tojson(ensure_ascii=False) }}{{ '</arg_value>\\n' }}
{%- endfor %}
{{- '</tool_call>' }}
{%- endfor %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\\n<think>' }}{% endif %}
"""

# The arguments are text, and there is no content beside calls.
DEEPSEEK = """
{{- bos_token }}
{%- for message in messages %}
{%- if message.role == 'user' %}{{ '<｜User｜>' + message.content }}
{%- elif message.tool_calls %}
{%- if message.content is not none %}{{ raise_exception('no content beside calls') }}{% endif %}
{%- generation %}
{{- '<｜Assistant｜><｜tool▁calls▁begin｜>' }}
{%- for call in message.tool_calls %}
{{- '<｜tool▁call▁begin｜>' + call.function.name + '<｜tool▁sep｜>' }}
{{- call.function.arguments + '<｜tool▁call▁end｜>' }}
{%- endfor %}
{{- '<｜tool▁calls▁end｜><｜end▁of▁sentence｜>' }}
{%- endgeneration %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<｜Assistant｜>' }}{% endif %}
"""

# It rejects a turn without reasoning, and every value is written as text.
THINKING = """
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.role == 'assistant' %}
{%- if not message.reasoning_content %}{{ raise_exception('think first') }}{% endif %}
{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}
{%- endif %}
{{- message.content or '' }}
{%- for call in message.tool_calls or [] %}
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": {' }}
{%- for key, value in call.function.arguments | items %}
{{- '"' + key + '": "' }}{{ value }}{{ '"' + (', ' if not loop.last else '') }}
{%- endfor %}
{{- '}}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}
"""

# The same list of calls as in other formats, after sentences that only one format has.
APRIEL = """
{%- for message in messages %}
{{- '<|' + message.role + '|>\\n' }}
{%- if message.reasoning_content %}{{ message.reasoning_content }}{% endif %}
{%- if message.reasoning_content %}{{ '\\n[BEGIN FINAL RESPONSE]\\n' }}{% endif %}
{{- message.content or '' }}
{%- if message.tool_calls %}
{{- '\\n<tool_calls>[' }}
{%- for call in message.tool_calls %}
{{- '{"name": "' + call.function.name + '", "arguments": ' + call.function.arguments | tojson + '}' }}
{{- ', ' if not loop.last }}
{%- endfor %}
{{- ']</tool_calls>' }}
{%- endif %}
{{- '\\n<|end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\\nHere are my reasoning steps:\\n' }}{% endif %}
"""

# Only the id of a call has its name.
KIMI = """
{%- for message in messages %}
{{- '<|im_' + message.role + '|>' + message.role + '<|im_middle|>' + (message.content or '') }}
{%- if message.tool_calls %}
{{- '<|tool_calls_section_begin|>' }}
{%- for call in message.tool_calls %}
{{- '<|tool_call_begin|>' + call.id + '<|tool_call_argument_begin|>' }}
{{- call.function.arguments | tojson }}{{ '<|tool_call_end|>' }}
{%- endfor %}
{{- '<|tool_calls_section_end|>' }}
{%- endif %}
{{- '<|im_end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_assistant|>assistant<|im_middle|>' }}{% endif %}
"""

# The same blocks as in other formats, in a section that only one format has.
SECTION = """
{%- for message in messages %}
{{- '<|' + message.role + '|>' + (message.content or '') }}
{%- if message.tool_calls %}
{{- '<tool_calls>\\n' }}
{%- for call in message.tool_calls %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson }}{{ '}\\n</tool_call>\\n' }}
{%- endfor %}
{{- '</tool_calls>' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}
"""

WITHOUT_TOOLS = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"

STYLES = {
    "hermes": HERMES,
    "qwen3_coder": QWEN3_CODER,
    "mistral": MISTRAL,
    "llama3_json": LLAMA3,
    "glm45": GLM,
    "deepseek_v31": DEEPSEEK,
    "kimi_k2": KIMI,
    "hunyuan_dense": SECTION,
}


def gguf(entries: list[tuple[str, Any]], *, version: int = 3, order: str = "<", count: int | None = None) -> bytes:
    """Return the header of a GGUF file. Values are str, int, bool, float, or a list of one of these."""
    size = "I" if version == 1 else "Q"

    def text(value: str) -> bytes:
        data = value.encode()
        return struct.pack(order + size, len(data)) + data

    def kind(value: Any) -> int:
        kinds = {str: 8, bool: 7, int: 10, float: 12, list: 9}
        return kinds[type(value)]

    def pack(value: Any) -> bytes:
        if isinstance(value, str):
            return text(value)
        if isinstance(value, list):
            head = struct.pack(order + "I" + size, kind(value[0]), len(value))
            return head + b"".join(map(pack, value))
        return struct.pack(order + {7: "?", 10: "Q", 12: "d"}[kind(value)], value)

    body = b"".join(text(key) + struct.pack(order + "I", kind(value)) + pack(value) for key, value in entries)
    entry_count = len(entries) if count is None else count
    return b"GGUF" + struct.pack(f"{order}I{size}{size}", version, 0, entry_count) + body
