"""Values as text: the notations they are written in (data), one reader, one search for where a value ends.

Below everything that reads: `repair` and `wire` stand on it. Nothing is evaluated, each character is looked at once.
"""
