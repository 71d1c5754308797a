"""Which bad servers a client is run before: those that do not change what the model means, and fit its dialect."""

from __future__ import annotations

from clients.client import Client
from zoo import ZOO
from zoo.bad_server import BadServer, as_meant

GOOD = "good"  # a server that behaves
_SCENES = ("plain", "second_round")  # what the task is: a call, its result, another call

# The twelve that most clients lose the turn at, or that most servers are reported for.
TWELVE: dict[str, tuple[str, ...]] = {
    "chat": (
        *("leaks_hermes", "leaks_bare", "leaks_behind_reasoning", "no_id", "ids_of_every_round", "no_index"),
        *("object_arguments", "python_arguments", "arguments_twice", "finish_stop", "finish_odd", "no_finish"),
    ),
    "responses": (
        *("leaks_hermes", "leaks_bare", "leaks_fenced", "wrong_parser", "no_id", "empty_id", "ids_of_every_round"),
        *("object_arguments", "python_arguments", "fenced_arguments", "arguments_twice", "no_completed"),
    ),
    "messages": (
        *("leaks_hermes", "leaks_bare", "leaks_behind_reasoning", "no_id", "empty_id", "ids_of_every_round"),
        *(
            "python_arguments",
            "fenced_arguments",
            "arguments_twice",
            "finish_stop",
            "no_message_delta",
            "no_message_stop",
        ),
    ),
    "ollama": ("leaks_hermes", "leaks_bare", "leaks_fenced", "text_arguments", "no_finish"),
    "gemini": ("leaks_hermes", "text_arguments", "finish_odd", "no_finish"),
}


def faults_for(client: Client, *, everything: bool = False) -> list[str]:
    """The names of its bad servers, with the good one first."""
    fitting = [server.name for server in ZOO.values() if fits(server, client.api)]
    return [GOOD, *(fitting if everything else TWELVE[client.api])]


def fits(server: BadServer, api: str) -> bool:
    return api in server.apis and server.means is as_meant and server.scene in _SCENES
