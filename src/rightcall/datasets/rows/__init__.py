"""Rows by the million: files are cut into parts, the parts are worked on in parallel, and results are written in order.

    map_rows(sources_of(["logs/*.jsonl"]), work, sink, LocalEngine(jobs=4))

stores.py           where files are: this machine, s3:// and others
sources.py          which files there are, how they are cut into parts, and the rows of a part
engines.py          who runs the work: this process, processes of this machine, a Ray cluster
sinks.py            where lines go: a stream, a file that a run can resume, a file that the run reads again
mapping.py          `map_rows`, and what the work on a part returns
replies.py          replies in rows of logs; the work of `parse --rows`
calls.py            calls as JSON; the work of `check --rows` and `repair --rows`
batch_parsing.py    `parse_many`: the same engine for texts in memory
"""
