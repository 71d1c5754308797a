"""Chat templates: where they are kept, how they are rendered without trusting them, which formats read what they write."""
