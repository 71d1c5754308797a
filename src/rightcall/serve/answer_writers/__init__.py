"""An answer in a client's dialect: one file for each, and the table of them."""
