"""Provider messages and streams <-> our values, both directions; one dialect per file, and no IO.

A dialect says what a response or a chunk holds as `deltas`; `assemble` turns deltas into the events that text gives
too. A whole response is a stream of one chunk, so reading it and streaming it cannot disagree.
"""
