"""Is what text only shows never called, and what is called never lost? Texts made from every format by discovery."""
