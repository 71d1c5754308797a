"""Importable tools for tests that send toolsets to other processes."""

from pydantic import BaseModel

from rightcall import tool


@tool(read_only=True, aliases={"town": "city"})
def look(city: str, days: int = 1) -> str:
    """Look at the sky."""
    return f"{days} days of sun in {city}"


async def wait(seconds: float) -> float:
    return seconds


class Place(BaseModel):
    """A place."""

    name: str


def run_calls(text: str, toolset: object) -> list[str]:
    """Return the results of the calls in a text."""
    from rightcall import dispatch_sync, parse

    return [result.text for result in dispatch_sync(parse(text, tools=toolset), toolset)]  # type: ignore[arg-type]
