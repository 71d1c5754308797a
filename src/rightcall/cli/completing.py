"""What the shell offers when Tab is pressed: names of formats, domains, models, and codes that can be explained.

Each takes what is typed so far and gives (word, what it is). Nothing here fails: a shell that waits for words has no
use for an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Offer = tuple[str, str]


def format_names(incomplete: str) -> list[Offer]:
    """Formats by name; by alias once something is typed."""
    from rightcall.formats import discover, known_formats

    discover()
    known = known_formats().formats.values()
    names = [(format.name, format.models) for format in known]
    aliases = [(alias, format.models) for format in known for alias in format.aliases if incomplete]
    return _beginning(incomplete, [*names, *aliases])


def read_format_names(incomplete: str) -> list[Offer]:
    """The same, and `auto`."""
    return [*_beginning(incomplete, [("auto", "whichever the text is written in")]), *format_names(incomplete)]


def domain_names(incomplete: str) -> list[Offer]:
    """Stub domains; behind a comma, the next one."""
    from rightcall.capture import catalogue

    before, comma, last = incomplete.rpartition(",")
    known = [(domain.name, domain.about) for domain in catalogue.find_domains(catalogue.names())]
    return [(f"{before}{comma}{name}", about) for name, about in _beginning(last, known)]


def model_names(incomplete: str) -> list[Offer]:
    from rightcall.backends.models import MODELS

    return _beginning(incomplete, [(model.name, model.about) for model in MODELS.values()])


def suite_names(incomplete: str) -> list[Offer]:
    """What `rightcall eval` can ask, and its other word."""
    from rightcall.evaluation.suites import SUITES

    known = [(name, suite.about) for name, suite in SUITES.items()]
    return _beginning(incomplete, [*known, ("compare", "two files of raw rows")])


def configuration_names(incomplete: str) -> list[Offer]:
    """Configurations of `rightcall eval`; behind a comma, the next one."""
    from rightcall.evaluation.configurations import CONFIGURATIONS

    before, comma, last = incomplete.rpartition(",")
    known = [(name, each.about) for name, each in CONFIGURATIONS.items()]
    return [(f"{before}{comma}{name}", about) for name, about in _beginning(last, known)]


def code_names(incomplete: str) -> list[Offer]:
    """Whatever `rightcall explain` explains."""
    from rightcall.cli.explain_command import summaries

    return _beginning(incomplete, [(name, what) for name, (_, what) in summaries().items()])


def _beginning(incomplete: str, offers: Iterable[Offer]) -> list[Offer]:
    return list(_matching(incomplete, offers))


def _matching(incomplete: str, offers: Iterable[Offer]) -> Iterator[Offer]:
    for word, about in offers:
        if word.startswith(incomplete):
            yield word, about
