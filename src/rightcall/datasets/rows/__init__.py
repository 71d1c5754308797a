"""Rows by the million: files cut into parts, each worked on apart, and what comes of them written in order.

    map_rows(sources_of(["logs/*.jsonl"]), work, sink, LocalEngine(jobs=4))

row_sources.py    which files there are, and what kind each is, told by its name
stores.py         where files lie: opened, measured, listed by one set of functions
remote_store.py   the stores that are not this machine: s3:// and others
parts.py          a source cut into parts: ranges of bytes, row groups, batches of lines
batches.py        the rows of one part, decoded by the process that works on it
outcomes.py       what the work on a part gives: lines out, counts, faults
engines.py        who does the work, and the one method that an engine has
local_pool.py     the engine of this machine: processes that may be killed and lose nothing
ray_engine.py     the engine of a cluster: Ray Data
engine_names.py   the engines by their names
sinks.py          where lines go: a stream, or a file that can be gone on with
remote_sink.py    a file in a store, sent when it is whole
spool.py          what is made of rows and read again by the same run
mapping.py        `map_rows`: all of it together
row_fields.py     what a row holds: the reply, its id, the model, the tools, told by keys or found by name
reply_lines.py    the work of `parse --rows`; call_lines.py that of `check` and `repair`
many.py           `parse_many`: the same for texts that a program has
"""
