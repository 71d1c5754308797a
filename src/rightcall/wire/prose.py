from rightcall.wire.buffer import Capture, Steps

__all__ = ["Capture", "Steps"]
