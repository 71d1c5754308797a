"""Real model servers, installed and run on this machine with a small model, and examined by `rightcall doctor`.

    make servers                # all of them, one at a time; writes docs/servers.md
    make servers SERVER=vllm    # one
    make servers SERVER=vllm API=chat    # one, in one dialect
    make servers CLIENTS=1      # real clients (of `make clients`) with a real model

Each is installed from the registry that pip is set to, into target/servers/NAME, and listens on loopback only while it
is examined. What was found is kept in `found/`, one file for each server, and the page is made from these.
"""
