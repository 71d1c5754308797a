"""An answer in a client's dialect: one file for each, and the table of them.

    writer = WRITERS["chat"](AnswerHead(id=new_answer_id("chat"), model="m", created=now, request=request))

`ordered_writer` keeps the order, a dialect's file has its shapes. No IO; bytes come out.
"""

from __future__ import annotations

import os

from rightcall.api_names import Api
from rightcall.serve.answer_writer import AnswerWriter
from rightcall.serve.answer_writers.chat_writer import ChatWriter
from rightcall.serve.answer_writers.gemini_writer import GeminiWriter
from rightcall.serve.answer_writers.messages_writer import MessagesWriter
from rightcall.serve.answer_writers.ollama_writer import OllamaWriter
from rightcall.serve.answer_writers.responses_writer import ResponsesWriter
from rightcall.serve.answer_writers.wire_json import encoded

__all__ = ["WRITERS", "encoded", "new_answer_id"]

WRITERS: dict[Api, type[AnswerWriter]] = {
    "chat": ChatWriter,
    "responses": ResponsesWriter,
    "messages": MessagesWriter,
    "ollama": OllamaWriter,
    "gemini": GeminiWriter,
}

_PREFIXES: dict[str, str] = {"chat": "chatcmpl-", "completions": "cmpl-", "responses": "resp_", "messages": "msg_"}


def new_answer_id(api: Api) -> str:
    """An id that no answer ever had, in the style of the dialect."""
    return _PREFIXES.get(api, "") + os.urandom(16).hex()
