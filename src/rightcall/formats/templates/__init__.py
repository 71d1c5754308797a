"""Chat templates: find them in files, render them in isolation, and detect the formats that parse their output."""
