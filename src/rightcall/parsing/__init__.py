"""From text to values: sans-IO, feed and close."""
