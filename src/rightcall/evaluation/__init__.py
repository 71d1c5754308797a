"""How well does a model call tools, and what does each part of rightcall add? Suites of cases, asked in configurations.

`suites` finds the cases, `configurations` says how they are asked and read, `case_run` holds one conversation,
`evaluation_run` all of them, durably; `eval_tally` counts the rows, `eval_page` shows them.
"""
