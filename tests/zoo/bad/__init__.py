"""The bad servers: one module for each class of failure, or for a few related classes."""
