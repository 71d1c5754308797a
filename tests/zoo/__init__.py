"""A zoo of bad servers: one for each way of misbehaving that users have reported, in each dialect it was reported in.

    ZOO["no_index"]                          a `BadServer`
    PYTHONPATH=tests python -m zoo           serves all of them: http://127.0.0.1:8099/no_index/v1

Each module of `zoo.bad` has its servers in `SERVERS`; a new one is found here.
"""

from __future__ import annotations

import importlib
import pkgutil

from zoo import bad
from zoo.bad_server import BadServer


def _found() -> dict[str, BadServer]:
    names = sorted(each.name for each in pkgutil.iter_modules(bad.__path__))
    servers = [server for name in names for server in importlib.import_module(f"zoo.bad.{name}").SERVERS]
    found = {server.name: server for server in servers}
    assert len(found) == len(servers), "two bad servers have one name"
    return found


ZOO: dict[str, BadServer] = _found()
