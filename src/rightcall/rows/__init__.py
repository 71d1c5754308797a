"""Rows by the million: files cut into parts, each worked on apart, and what comes of them written in order.

    map_rows(sources_of(["logs/*.jsonl"]), work, sink, LocalEngine(jobs=4))

row_sources.py    which files there are, and what kind each is, told by its name
stores.py         where files lie: opened, measured, listed by one set of functions
parts.py          a source cut into parts: ranges of bytes, row groups, batches of lines
batches.py        the rows of one part, decoded by the process that works on it
outcomes.py       what the work on a part gives: lines out, counts, faults
engines.py        who does the work, and the one method that an engine has
local_pool.py     the engine of this machine: processes that may be killed and lose nothing
sinks.py          where lines go: a stream, or a file that can be gone on with
mapping.py        `map_rows`: all of it together
"""
