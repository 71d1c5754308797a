"""Runs of real clients: each does one task with tools against a bad server, with and without the proxy."""
