"""What can be wrong with a chat template, told so that the one who passed it can act on it."""

from __future__ import annotations

from rightcall.errors import CallerError


class BadTemplate(CallerError):
    """A file that holds no chat template, or a template that cannot be rendered."""


class TemplateStopped(BadTemplate):
    """The template went over a limit. `limit` names it: cpu, wall, memory or output."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(f"the template was stopped: {message}")
        self.limit = limit
