"""Reports of logged replies: how many calls are runnable, repaired or rejected, samples, and changes between two logs.

`logged_rows` reads the rows of a log, `findings` lists what is to say of one reply, `reply_samples` cuts samples,
`reply_tally` counts, `log_changes` compares two tallies with the tests of `significance`, and `report_page` presents
the result. A tally can be merged, so parts of a log may be counted in any process and in any order.
"""
