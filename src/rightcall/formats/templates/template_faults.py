"""Errors of chat templates."""

from __future__ import annotations

from rightcall.errors import CallerError


class BadTemplate(CallerError):
    """A file without a chat template, or a template that cannot be rendered."""


class TemplateStopped(BadTemplate):
    """The template exceeded a limit. `limit` names it: cpu, wall, memory or output."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(f"the template was stopped: {message}")
        self.limit = limit
