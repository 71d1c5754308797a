"""One file per body kind: how the calls of a block are read."""
