"""The headers of a response: short, in ASCII, and without content of the request or the answer."""

from hypothesis import given
from hypothesis import strategies as st

from rightcall.api_names import APIS
from rightcall.serve.exchanged import LONGEST, SERVED_BY, Exchanged, ExchangedContent, headers_of, new_request_id
from rightcall.types import Reply, Text


def test_headers_describe_the_exchange() -> None:
    exchanged = Exchanged(
        id="req_1", route="chat", mode="native", upstream="here", repairs=["a", "b", "a"], retries=2, guard=["x: nudge"]
    )
    assert headers_of(exchanged) == {
        "x-rightcall-id": "req_1",
        "x-rightcall-upstream": "here",
        "x-rightcall-mode": "native",
        "x-rightcall-repairs": "a;n=2, b",
        "x-rightcall-retries": "2",
        "x-rightcall-guard": "x: nudge",
    }


def test_an_empty_exchange_has_only_an_id_header() -> None:
    assert headers_of(Exchanged(id="req_1", route="health")) == {"x-rightcall-id": "req_1"}


@given(st.text(max_size=600), st.lists(st.text(max_size=600), max_size=5))
def test_every_header_is_bounded_printable_ascii(format_name: str, texts: list[str]) -> None:
    exchanged = Exchanged(id="r", route="chat", format=format_name, problems=texts, warnings=texts, guard=texts)
    for name, value in headers_of(exchanged).items():
        assert len(value) <= LONGEST and value.isascii() and value.isprintable(), name


def test_no_header_contains_content() -> None:
    content = ExchangedContent(
        sent={"messages": "swordfish"}, received="swordfish", answered=Reply((Text("swordfish"),))
    )
    headers = headers_of(Exchanged(id="r", route="chat", model="swordfish", content=content))
    assert "swordfish" not in str(headers)


def test_exchanges_do_not_share_lists() -> None:
    one, other = Exchanged(id="1", route="chat"), Exchanged(id="2", route="chat")
    one.repairs.append("a")
    assert other.repairs == []


def test_request_ids_are_unique_and_every_dialect_has_a_route() -> None:
    assert len({new_request_id() for _ in range(100)}) == 100
    assert set(SERVED_BY) == set(APIS)
