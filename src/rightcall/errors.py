"""What rightcall raises. What a *model* got wrong is a `Problem`, not an exception, unless the caller asks for one.

    RightcallError
    |-- CallerError            the calling code passed something that cannot work
    |   |-- UnknownFormat      no format of that name; names the nearest
    |   |-- BadFormat          a format definition that breaks its own rules
    |   |-- BadTools           a tool definition that cannot be used
    |   `-- CannotCarry        this reply cannot be written in that format without changing it
    |-- ModelError             what the model wrote, where the caller asked for an exception
    |-- ToolError              a tool's own code failed
    `-- BackendError           a model server or the way to it failed

Every message names the culprit, the cause and the cure.
"""

from __future__ import annotations


class RightcallError(Exception):
    """Anything this package raises on purpose."""


class CallerError(RightcallError):
    pass


class UnknownFormat(CallerError):
    pass


class BadFormat(CallerError):
    pass


class BadTools(CallerError):
    pass


class CannotCarry(CallerError):
    """`path` points into the reply (`/parts/0/arguments/city`), `cause` says what the wire would change."""

    def __init__(self, format: str, path: str, cause: str) -> None:
        super().__init__(
            f"format {format!r} cannot carry {path}: {cause}; send it in another format or change the value"
        )
        self.format, self.path, self.cause = format, path, cause


class ModelError(RightcallError):
    pass


class ToolError(RightcallError):
    pass


class BackendError(RightcallError):
    pass
