"""From captured rows to data worth training on: check, label, split, redact, release, export, import.

Everything streams: a command holds one line, or one conversation, and keeps what it must know of the rest on disk.
"""
