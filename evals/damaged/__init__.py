"""Damage calls whose truth is known, in many ways, and check that each call that still runs is the intended call.

    make damage                       damage all calls, print the tables, fail if one runs with other arguments
    make damage FLAGS=--write         the same, and write the page and the ratchet

`toolsets` generates tools and calls. `wires` writes a call as several formats do. `text_ways`, `value_ways` and
`envelope_ways` damage it. `judge` classifies the outcome. The same seed always gives the same texts.
"""
