"""Runs tool calls: checked, within limits, watched by hooks, traced, with results that fit a model's context."""
