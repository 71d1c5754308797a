"""Bad servers: one for each fault that users have reported, in each dialect in which it was reported.

    ZOO["no_index"]                          a `BadServer`
    PYTHONPATH=tests python -m zoo           serve all of them: http://127.0.0.1:8099/no_index/v1

Each module of `zoo.bad` has its servers in `SERVERS`; new modules are found automatically.
"""

from __future__ import annotations

import importlib
import pkgutil

from zoo import bad
from zoo.bad_server import BadServer


def _find_servers() -> dict[str, BadServer]:
    names = sorted(each.name for each in pkgutil.iter_modules(bad.__path__))
    servers = [server for name in names for server in importlib.import_module(f"zoo.bad.{name}").SERVERS]
    servers_by_name = {server.name: server for server in servers}
    assert len(servers_by_name) == len(servers), "two bad servers have one name"
    return servers_by_name


ZOO: dict[str, BadServer] = _find_servers()
