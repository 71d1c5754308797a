"""Small captures for tests: conversations of a fictional model over a built-in domain, as a run writes them."""

from collections.abc import Iterator
from pathlib import Path

from rightcall import Ids, parse
from rightcall.capture.captured_rows import CallTrace, Journal, capture_row, outcome_row
from rightcall.capture.domain import find_domain
from rightcall.capture.stubs import StubOutcome
from rightcall.providers.openai_chat import CHAT
from rightcall.types import Json

SHOP = find_domain("shopping")
AT = 1_763_200_000_000


def call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


RIGHT = call("add_to_cart", '{"product_id": "SKU-DOCK-1", "quantity": 2}')
TO_REPAIR = call("add_to_cart", '{"product_id": "SKU-DOCK-1", "quantity": "2"}')
TO_REJECT = call("add_to_cart", '{"product_id": "SKU-DOCK-1"}')
LOOK_UP = call("get_product", '{"product_id": "SKU-DOCK-1"}')

# The model's output, turn by turn, for the request "Put two of the docks SKU-DOCK-1 into my cart."
CONVERSATIONS: dict[str, tuple[str, ...]] = {
    "right": (RIGHT, "Two docks are in your cart."),
    "repaired": (TO_REPAIR, "Done. Write to ann.lee@mail.test for help."),
    "retried": (TO_REJECT, RIGHT, "Done."),
    "parallel": (f"{LOOK_UP}\n{RIGHT}", "Done."),
    "refused": ("I cannot do that.",),
    "wrong": (call("search_products", '{"query": "dock"}'), "I found a dock."),
}


def conversation(
    group: str, replies: tuple[str, ...], *, scenario: str = "add_dock", run: int = 0, format: str = "hermes"
) -> Iterator[Json]:
    """Yield the rows of one run. A rejected call is answered with its problems."""
    scenario_found = SHOP.by_name[scenario]
    messages: list[Json] = [
        {"role": "system", "content": "Stubs."},
        {"role": "user", "content": scenario_found.request},
    ]
    ids, done, errors = Ids.numbered("capture_call"), list[str](), list[str]()
    for turn, text in enumerate(replies):
        reply = parse(text, tools=SHOP.tools, format=format, ids=ids)
        ids.next_turn()
        assistant, before = CHAT.assistant_message(reply), list(messages)

        def trace(index: int = 0, id: str = "", turn: int = turn) -> CallTrace:
            return CallTrace(
                domain="shopping",
                scenario=scenario,
                run_index=run,
                turn=turn,
                model="test-model",
                call_index=index,
                tool_call_id=id,
                scenario_kind=scenario_found.kind,
                mode="text",
                guard="parse",
                format=format,
            )

        if not reply.attempts:
            yield outcome_row(
                group=group,
                request=scenario_found.request,
                tools=SHOP.tools,
                trace=trace(),
                messages=before,
                assistant=assistant,
                reply=text,
                text=reply.content,
                captured_at_unix_ms=AT,
            )
            return
        messages.append(assistant)
        for index, attempt in enumerate(reply.attempts):
            wrong = " ".join([problem.message for problem in attempt.problems if problem.blocking])
            result = SHOP.run(attempt.name, attempt.arguments) if attempt.ok else StubOutcome("error", {"error": wrong})
            yield capture_row(
                attempt,
                group=group,
                request=scenario_found.request,
                tools=SHOP.tools,
                trace=trace(index, attempt.id),
                messages=before,
                assistant=assistant,
                reply=text,
                result=result if attempt.ok else None,
                problems=attempt.problems,
                completed=list(done),
                recent_errors=list(errors),
                captured_at_unix_ms=AT,
            )
            (done if result.status == "ok" else errors).append(
                attempt.name if result.status == "ok" else result.message
            )
            messages.append(
                {"role": "tool", "tool_call_id": attempt.id, "name": attempt.name, "content": result.message}
            )


def rows(*names: str) -> list[Json]:
    """Return the rows of the conversations with these names; of all without names."""
    chosen = names or tuple(CONVERSATIONS)
    return [row for at, name in enumerate(chosen) for row in conversation(f"g-{name}", CONVERSATIONS[name], run=at)]


def write(path: Path, entries: list[Json]) -> Path:
    with Journal(path) as journal:
        journal.append_all(entries)
    return path


FORGE_ROW: Json = {
    "schema_version": "forge-dataset-capture/v1",
    "kind": "tool_call_candidate",
    "example_group_id": "forge-dataset-shopping-add_dock-run-00000-1",
    "source_bucket": "real_model_call",
    "user_request": "Put two of the docks SKU-DOCK-1 into my cart.",
    "workflow_state": {
        "required_steps": [],
        "completed_steps": [],
        "pending_steps": [],
        "terminal_tools": ["respond"],
        "recent_errors": [],
    },
    "available_tools": rows("right")[0]["available_tools"],
    "candidate_call": {"name": "add_to_cart", "arguments": {"product_id": "SKU-DOCK-1", "quantity": 2}},
    "tool_result": {"status": "ok", "content": {"cart_id": "cart-001"}},
    "proxy_trace": {
        "domain": "shopping",
        "scenario": "add_dock",
        "run_index": 0,
        "turn": 0,
        "call_index": 0,
        "tool_call_id": "a",
        "response_id": None,
        "finish_reason": "tool_calls",
        "model": "m",
    },
    "metadata": {"private_agent_log": True, "public_export_allowed": False, "provenance": {"source": "forge-dataset"}},
}
