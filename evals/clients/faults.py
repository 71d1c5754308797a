"""Select the bad servers for a client: those that do not change the intended call, and support its dialect."""

from __future__ import annotations

from clients.client import Client
from clients.incurable import INCURABLE
from zoo import ZOO
from zoo.bad_server import BadServer, same_output

GOOD = "good"  # a server without a fault
_SCENES = ("plain", "second_round")  # the task: a call, its result, another call

# The twelve that break most clients, or that are reported for most servers.
TWELVE: dict[str, tuple[str, ...]] = {
    "chat": (
        *("leaks_hermes", "leaks_bare", "no_id", "ids_of_every_round", "no_index", "object_arguments"),
        *("python_arguments", "finish_odd", "no_finish", "whole_for_stream", "breaks_off", "name_made_up"),
    ),
    "responses": (
        *("leaks_hermes", "no_id", "ids_of_every_round", "object_arguments", "python_arguments", "no_completed"),
        *("only_completed", "empty_output", "chat_usage", "events_without_places", "whole_for_stream", "breaks_off"),
    ),
    "messages": (
        *("leaks_hermes", "leaks_bare", "no_id", "ids_of_every_round", "python_arguments", "finish_stop"),
        *("no_message_delta", "no_event_names", "input_in_start", "no_block_stop", "whole_for_stream", "breaks_off"),
    ),
    "ollama": (
        *("leaks_hermes", "leaks_bare", "leaks_fenced", "text_arguments", "no_finish", "events_for_lines"),
        *("breaks_off", "name_in_namespace", "name_in_capitals", "name_made_up", "call_in_think"),
        "parameter_names_in_capitals",
    ),
    "gemini": (
        *("leaks_hermes", "text_arguments", "finish_odd", "no_finish", "whole_for_stream", "breaks_off"),
        *("name_in_namespace", "name_made_up", "other_parameter_names", "announces"),
    ),
}


def faults_for(client: Client, *, everything: bool = False) -> list[str]:
    """Return the names of the client's bad servers, after the good one."""
    fitting = [name for name, server in ZOO.items() if fits(server, client.api) and name not in client.skips]
    return [GOOD, *([*fitting, *INCURABLE] if everything else TWELVE[client.api])]


BAD: dict[str, BadServer] = {**ZOO, **INCURABLE}


def fits(server: BadServer, api: str) -> bool:
    return api in server.apis and server.intent is same_output and server.scene in _SCENES and server.right == "meant"
