"""instructor: each step is an object of a class, from a forced call; the answer is plain text."""

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


def request_step(step_class: type[BaseModel]) -> Any:
    return CLIENT.chat.completions.create(model=MODEL, messages=MESSAGES, response_model=step_class, max_retries=1)


def append_result(step: BaseModel, result: str) -> None:
    MESSAGES.append({"role": "assistant", "content": step.model_dump_json()})
    MESSAGES.append({"role": "user", "content": f"Observation: {result}"})


first = request_step(ReadFile)
append_result(first, read_file(first.path))
second = request_step(EditFile)
append_result(second, edit_file(second.path, second.old, second.new))
print(SERVER.chat.completions.create(model=MODEL, messages=MESSAGES).choices[0].message.content)
