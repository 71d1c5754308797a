from rightcall.wire.calls import CallBuilder as Engine
from rightcall.wire.calls import Whole

__all__ = ["Engine", "Whole"]
