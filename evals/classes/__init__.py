"""Texts of every known class of fault, made from the formats, and the judge of how they are read.

    make classes                      judge all, print the table, fail under 100 %
    make classes FLAGS=--write        make the file of texts again, after a format or a class has changed

A class is a way in which a model, a server or a template goes wrong (`CLASSES` in `made.py` says each in a line). A
text is made from the data of a format, with what must come of it; what is left open by the rules is left open here.
"""
