"""Find and replace secrets in text and JSON data, by one set of rules: for recordings, errors, traces and datasets.

    Scrubber(own=["the backend's key"]).text("Cookie: id=opensesame")   ->   "Cookie: [key]"

`secret_shapes` has the patterns of secrets, `secret_names` the names of fields with secrets, `members` finds the values
under such names in any text, `scrubber` replaces secrets, and `pieces` does so in a streamed answer, all in linear
time.
"""
