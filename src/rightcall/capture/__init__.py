"""Capture model calls as training rows: scenarios over stub tools are run against a model, and each call is a row.

`domain` has the stub tools and scenarios, `runner` runs them and writes the rows of `captured_rows` durably,
`capture_journal` lets a run continue after a crash, and `score` judges calls and counts rows.
"""
