"""The bad servers, a file for each class of failure or for a few that are kin."""
