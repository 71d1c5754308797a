"""Chat templates: where they are kept, how they are rendered without trust, which formats read what they write."""
