"""Install real model servers, run them on this machine with a small model, and examine them with `rightcall doctor`.

    make servers                # all of them, one at a time; writes docs/servers.md
    make servers SERVER=vllm    # one
    make servers SERVER=vllm API=chat    # one, in one dialect
    make servers CLIENTS=1      # real clients (of `make clients`) with a real model

Each is installed from the registry that pip is configured with, into target/servers/NAME, and listens on loopback only
while it is examined. The results are stored in `found/`, one file for each server; the page is generated from them.
"""
