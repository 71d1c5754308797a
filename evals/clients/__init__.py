"""Real clients, really run: each does one task with tools, before a bad server, without the proxy and with it."""
