"""For tests."""
