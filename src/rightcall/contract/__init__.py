"""The contract: what a model without native tools is told, and the ledger that keeps "done" honest."""
