"""The same questions once more, through the proxy that the diagnosis recommends, for each dialect that was spoken.

    after = await examine_through(diagnosis, settings)

The proxy runs in this process, on a free port of this machine, with the very flags of the line that is shown.
"""

from __future__ import annotations

import os
import time

import msgspec

from rightcall.api_names import Api
from rightcall.doctor.diagnosis import Diagnosis, upstream
from rightcall.doctor.examination import ExamSettings, Watch, examine
from rightcall.serve.proxy import Proxy
from rightcall.serve.proxy_settings import ProxySettings
from rightcall.serve.settings_source import source_of, upstream_key

_OWN = "RIGHTCALL_SERVE_"


async def examine_through(direct: Diagnosis, settings: ExamSettings, watch: Watch | None = None) -> Diagnosis:
    """What clients see who ask the proxy in place of the server. The budget holds for each of both."""
    begun = time.monotonic()
    left = settings.max_requests
    found: list[Diagnosis] = []
    for api in direct.spoken:
        mine = msgspec.structs.replace(settings, apis=(api,), model=direct.model, max_requests=left)
        async with Proxy(proxy_settings(direct, api, settings)) as proxy:
            found.append(await examine(proxy.address, mine, watch))
        left = max(0, left - found[-1].requests)
    return Diagnosis(
        url=direct.url,
        model=direct.model,
        kind="rightcall",
        dialects=tuple([each for part in found for each in part.dialects]),
        results=tuple([each for part in found for each in part.results]),
        requests=sum([each.requests for each in found]),
        seconds=time.monotonic() - begun,
        skipped=sum([each.skipped for each in found]),
    )


def proxy_settings(direct: Diagnosis, api: Api, settings: ExamSettings) -> ProxySettings:
    """The settings of the proxy before this server: those of the line that cures its faults in this dialect."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
    flags = {name.removeprefix("--").replace("-", "_"): value for name, value in direct.cure_flags(api).items()}
    source = source_of({"upstream": [upstream(direct.url, api)], "port": "0", **flags}, environ=environ)
    made = source.read()
    if settings.api_key_env is None:
        return made
    server = msgspec.structs.replace(made.upstream[0], api_key_env=settings.api_key_env)
    keyed = msgspec.structs.replace(server, key=upstream_key(server, environ))
    return msgspec.structs.replace(made, upstream=(keyed,))
