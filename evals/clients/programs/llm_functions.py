"""The tools in the form that `llm --functions` takes."""

from pathlib import Path


def read_file(path: str) -> str:
    """Read a file."""
    return Path(path).read_text("utf-8")


def edit_file(path: str, old: str, new: str) -> str:
    """Change a word in a file."""
    text = Path(path).read_text("utf-8")
    Path(path).write_text(text.replace(old, new), "utf-8")
    return "changed"
