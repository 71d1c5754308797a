"""placeholder"""

from rightcall.backend.base import BaseBackend


class Recorder(BaseBackend):
    def __init__(self, backend: object, path: str) -> None: ...
