"""From what people have at hand to `Tool` values."""
