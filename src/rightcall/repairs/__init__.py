"""Repair calls that a model or a server wrote wrongly, with a receipt for every change."""
