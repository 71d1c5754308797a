"""What every server of ours asks of a request before anything else sees it: Host, Origin, kind of body, key, limits.

    guard = guarding("127.0.0.1", key=new_key())
    guard.refusal(Head("POST", "/v1/chat/completions", headers))   ->   None, or what to answer instead

`guard` decides and knows no network; `web` (aiohttp) and `asgi` put it before an application; `slow_heads` ends
connections that ask for nothing; `refused_requests` words what is refused as the dialect of the path does. A server
that does not listen through here does not listen.
"""
