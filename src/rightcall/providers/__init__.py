"""Convert provider messages and streams to and from rightcall's values. One dialect per module, no I/O.

A dialect reads a response or a chunk as deltas; `assembler` turns deltas into the same events that parsed text gives.
A whole response is assembled like a stream of one chunk, so both give the same reply.
"""
