"""What is secret in a text or in JSON data, by one set of rules: for recordings, errors, traces and datasets.

    Scrubber(own=["the backend's key"]).text("Cookie: id=opensesame")   ->   "Cookie: [key]"

`rules` are the shapes of secrets, `names` the names under which they stand, `members` finds the values under such names
in any text, `scrubber` replaces, and `stream` does so in an answer that came in pieces. All of it takes linear time.
"""
