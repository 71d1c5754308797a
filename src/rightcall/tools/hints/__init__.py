"""Annotations of functions and classes: what each says to a model, and how its value is made of JSON.

`meanings.py` knows every annotation that has a meaning here, and every kind of them has a file. Only the standard
library and msgspec are needed; a function that holds something of pydantic goes to it whole.
"""
