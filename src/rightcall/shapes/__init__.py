"""The grammar algebra: pieces of a grammar, shapes of values, and how each notation writes a shape as pieces."""
