"""The engines by their names."""

from __future__ import annotations

from typing import Literal

from rightcall.datasets.rows.engines import Engine
from rightcall.datasets.rows.local_pool import LocalEngine
from rightcall.errors import CallerError

EngineName = Literal["local", "ray"]


def engine_of(name: str = "local", jobs: int | None = None) -> Engine:
    """An engine with so many workers. Raises `CallerError` for a name that there is not, `MissingExtra` where Ray is
    not installed.

    - `name`: `local`, processes of this machine; `ray`, the cluster of `RAY_ADDRESS`, or Ray on this machine.
    - `jobs`: how many work at a time; None: as many as there are cores.
    """
    if name == "local":
        return LocalEngine(jobs)
    if name != "ray":
        raise CallerError(f"no engine {name!r:.40}; there are local and ray")
    from rightcall.datasets.rows.ray_engine import RayEngine

    return RayEngine(jobs)
