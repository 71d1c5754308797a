"""A client's body, read: one file for each dialect, and the table of them."""
