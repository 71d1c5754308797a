"""Talking to a model: one way to ask any server, a recording, or a model of one's own.

    backend = Backend("http://127.0.0.1:8080", model="qwen3")
    answer = await backend.complete(Request(messages=[{"role": "user", "content": "Hi"}], tools=[get_weather]))

A request and an answer are values (`request`); `body` writes a request in a server's dialect and `apis` reads what
comes back; an `Exchange` carries bytes and nothing else, so that a recording can stand in for a network.
"""
