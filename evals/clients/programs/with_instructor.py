"""instructor: each step is an object of a class, by a call that is demanded; the answer is plain text."""

from __future__ import annotations

from typing import Any

import instructor
from file_tools import BASE, MODEL, TASK, edit_file, read_file
from openai import OpenAI
from pydantic import BaseModel


class ReadFile(BaseModel):
    path: str


class EditFile(BaseModel):
    path: str
    old: str
    new: str


SERVER = OpenAI(base_url=f"{BASE}/v1", api_key="none", max_retries=1)
CLIENT = instructor.from_openai(SERVER)


MESSAGES: list[Any] = [{"role": "user", "content": TASK}]


def asked(kind: type[BaseModel]) -> Any:
    return CLIENT.chat.completions.create(model=MODEL, messages=MESSAGES, response_model=kind, max_retries=1)


def told(made: BaseModel, result: str) -> None:
    MESSAGES.append({"role": "assistant", "content": made.model_dump_json()})
    MESSAGES.append({"role": "user", "content": f"Observation: {result}"})


first = asked(ReadFile)
told(first, read_file(first.path))
second = asked(EditFile)
told(second, edit_file(second.path, second.old, second.new))
print(SERVER.chat.completions.create(model=MODEL, messages=MESSAGES).choices[0].message.content)
