"""Texts of every known class of fault, generated from the formats, and the checks of how they are parsed.

    make classes                      check all texts, print the table, fail under 100 %
    make classes FLAGS=--write        generate the file of texts again, after a format or a class has changed

A class is a kind of mistake that a model, a server or a template makes. The module of each class describes it in a
line. A text is generated from the data of a format, together with the expected result. Where the rules allow several
results, the expectation allows them too.
"""
