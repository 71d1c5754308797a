"""The table of servers in the documentation matches the profiles."""

from pathlib import Path

from rightcall.backends.profiles import PROFILES, Profile, ServerSign

PAGE = Path(__file__).resolve().parent.parent / "docs" / "backends.md"


def format_row(profile: Profile) -> str:
    cells = [
        profile.title,
        ", ".join(profile.choices) or "ignored",
        ", ".join(profile.grammar_fields) or "none",
        ", ".join(profile.reasoning),
        f"{profile.ids.shortest}-{profile.ids.longest} of `{profile.ids.chars}`" if profile.ids.chars else "any",
        "; ".join(map(format_sign, profile.signs)),
    ]
    return f"| {' | '.join(cells)} |"


def format_sign(sign: ServerSign) -> str:
    if sign.host:
        return f"host {sign.host}"
    route_or_key = f"route {sign.route}" if sign.route else sign.key
    what = " ".join(["header", *sign.header]).strip() if sign.header else route_or_key
    return f"GET {sign.path}: {f'owned_by {sign.owned_by}' if sign.owned_by else what}"


def test_the_documentation_has_a_row_for_every_profile() -> None:
    lines = PAGE.read_text("utf-8").splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("| server |")) + 2
    assert lines[start : start + len(PROFILES)] == list(map(format_row, PROFILES.values()))
    assert not lines[start + len(PROFILES)].startswith("|")
