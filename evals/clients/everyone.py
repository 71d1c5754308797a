"""All clients by name."""

from __future__ import annotations

from clients.client import Client
from clients.libraries import LIBRARIES
from clients.terminal_agents import AGENTS

CLIENTS: dict[str, Client] = {client.name: client for client in (*AGENTS, *LIBRARIES)}
