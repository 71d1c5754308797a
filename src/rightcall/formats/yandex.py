"""YandexGPT:  `[TOOL_CALL_START]f\\n{"x": 1}`"""

from rightcall.formats.spec import Format, NameThenJson, Special

YANDEXGPT = Format(
    "yandexgpt",
    body=NameThenJson(open="{name}\n"),
    call=(Special("[TOOL_CALL_START]"), ""),
    between="\n",
    ends=(Special("</s>"),),
    models="YandexGPT 5 Lite",
)
