"""What became of logged replies, counted: how many calls may run, what was repaired, what refused, and what changed.

`reply_tally` counts, `logged_replies` reads the lines of a log, `log_changes` holds one tally against another, and
`significance` has the statistics. A tally is a value that merges: parts of a log may be counted anywhere.
"""
