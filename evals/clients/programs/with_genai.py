"""google-genai for Python: the SDK receives functions and calls them itself, streamed."""

from __future__ import annotations

from file_tools import BASE, MODEL, TASK, edit_file, read_file
from google import genai
from google.genai import types

CLIENT = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=BASE))
CHAT = CLIENT.chats.create(model=MODEL, config=types.GenerateContentConfig(tools=[read_file, edit_file]))
print("".join([chunk.text or "" for chunk in CHAT.send_message_stream(TASK)]))
