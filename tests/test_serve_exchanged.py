"""What the headers say of one request: short, in ASCII, and never what somebody wrote."""

from hypothesis import given
from hypothesis import strategies as st

from rightcall.api_names import APIS
from rightcall.serve.exchanged import LONGEST, SERVED_BY, Exchanged, ExchangedContent, headers_of, new_request_id
from rightcall.types import Reply, Text


def test_headers_say_what_was_done() -> None:
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


def test_an_exchange_of_nothing_has_an_id_alone() -> None:
    assert headers_of(Exchanged(id="req_1", route="health")) == {"x-rightcall-id": "req_1"}


@given(st.text(max_size=600), st.lists(st.text(max_size=600), max_size=5))
def test_every_header_is_bounded_printable_ascii(word: str, words: list[str]) -> None:
    exchanged = Exchanged(id="r", route="chat", format=word, problems=words, warnings=words, guard=words)
    for name, value in headers_of(exchanged).items():
        assert len(value) <= LONGEST and value.isascii() and value.isprintable(), name


def test_no_header_holds_content() -> None:
    content = ExchangedContent(
        sent={"messages": "swordfish"}, received="swordfish", answered=Reply((Text("swordfish"),))
    )
    told = headers_of(Exchanged(id="r", route="chat", model="swordfish", content=content))
    assert "swordfish" not in str(told)


def test_no_two_exchanges_share_a_list() -> None:
    one, other = Exchanged(id="1", route="chat"), Exchanged(id="2", route="chat")
    one.repairs.append("a")
    assert other.repairs == []


def test_request_ids_differ_and_every_dialect_has_a_route() -> None:
    assert len({new_request_id() for _ in range(100)}) == 100
    assert set(SERVED_BY) == set(APIS)
