"""Parameter descriptions in docstrings of the common styles."""

from __future__ import annotations

import time

import pytest

from rightcall.tools.signatures import read_docstring

GOOGLE = """Gets the weather.

    It asks a server.

    Args:
        city (str): Where, with
            the country.
        unit (Literal["c", "f"], optional): Which: c or f.
        *rest: More.

    Returns:
        dict: what it found

    Raises:
        ValueError: never
    """

NUMPY = """Gets the weather.

    It asks a server.

    Parameters
    ----------
    city : str
        Where, with
        the country.
    unit : {"c", "f"}, optional
        Which: c or f.
    *rest
        More.

    Returns
    -------
    dict
        what it found
    """

SPHINX = """Gets the weather.

    It asks a server.

    :param str city: Where, with
        the country.
    :param unit: Which: c or f.
    :type unit: str
    :param rest: More.
    :returns: what it found
    :rtype: dict
    :raises ValueError: never
    """

EPYDOC = """Gets the weather.

    It asks a server.

    @param city: Where, with
        the country.
    @param unit: Which: c or f.
    @param rest: More.
    @return: what it found
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX, EPYDOC], ids=["google", "numpy", "sphinx", "epydoc"])
def test_every_docstring_style_gives_the_same_descriptions(text: str) -> None:
    docs = read_docstring(text)
    assert docs.description == "Gets the weather.\n\nIt asks a server."
    assert docs.parameters == {"city": "Where, with the country.", "unit": "Which: c or f.", "rest": "More."}


PLAIN = [
    "",
    "One line.",
    "Two\nlines.",
    "A list:\n    args: not a section\n    b: c\nEnd.",
    "Note:\n    Stays in.\n\nEnd.",
    "Args are good.",
    "Parameters\nwithout a rule",
    ":not a field",
    "Example:\n\n    >>> f(a=1)\n\nEnd.",
]


@pytest.mark.parametrize("text", PLAIN)
def test_text_in_no_known_style_is_the_description(text: str) -> None:
    assert read_docstring(text) == (text, {})


def test_no_docstring_is_an_empty_description() -> None:
    assert read_docstring(None) == ("", {})


def test_several_parameters_can_share_a_numpy_entry() -> None:
    assert read_docstring("S.\n\nParameters\n----------\na, b : int\n    Both.").parameters == {
        "a": "Both.",
        "b": "Both.",
    }


def test_text_after_a_section_is_kept() -> None:
    docs = read_docstring("S.\n\nArgs:\n    a: One.\n\nMore.")
    assert docs == ("S.\n\nMore.", {"a": "One."})


def test_a_long_hostile_docstring_is_read_in_bounded_time() -> None:
    for piece in ("Args:\n", "    a (", ":param x", "a, ", "    a (b) ", "-" * 80 + "\n", "Parameters\n---\n"):
        start = time.process_time()
        read_docstring("S.\n\nArgs:\n" + piece * 5000)
        assert time.process_time() - start < 3, piece
