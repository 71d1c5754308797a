"""`rightcall doctor`: examine a model server with the requests of real clients, and diagnose what is wrong.

`examination` sends the `questions` and parses the `answers`; the `judges` decide about each answer, the table of
`probes` says which judge looks at which question, and `diagnosis` holds the results, by `failure_classes`.
"""
