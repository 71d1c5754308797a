"""Calls whose truth is known, damaged in every way we could think of: does what still runs say what was meant?

    make damage                       damage them all, print the tables, fail if one runs with other arguments
    make damage FLAGS=--write         the same, and writes the page and the ratchet

`toolsets` makes up tools and calls, `wires` writes a call as several formats do; `text_ways`, `value_ways` and
`envelope_ways` damage it; `judge` says what came of it. The same seed always makes the same texts.
"""
