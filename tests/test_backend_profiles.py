"""The table of servers in the documentation says what the profiles say."""

from pathlib import Path

from rightcall.backends.profiles import PROFILES, Profile, ServerSign

PAGE = Path(__file__).resolve().parent.parent / "docs" / "backends.md"


def row(profile: Profile) -> str:
    cells = [
        profile.title,
        ", ".join(profile.choices) or "ignored",
        ", ".join(profile.grammar_fields) or "none",
        ", ".join(profile.reasoning),
        f"{profile.ids.shortest}-{profile.ids.longest} of `{profile.ids.chars}`" if profile.ids.chars else "any",
        "; ".join(map(shown, profile.signs)),
    ]
    return f"| {' | '.join(cells)} |"


def shown(sign: ServerSign) -> str:
    if sign.host:
        return f"host {sign.host}"
    told = f"route {sign.route}" if sign.route else sign.key
    what = " ".join(["header", *sign.header]).strip() if sign.header else told
    return f"GET {sign.path}: {f'owned_by {sign.owned_by}' if sign.owned_by else what}"


def test_the_page_has_the_row_of_every_profile() -> None:
    lines = PAGE.read_text("utf-8").splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("| server |")) + 2
    assert lines[start : start + len(PROFILES)] == list(map(row, PROFILES.values()))
    assert not lines[start + len(PROFILES)].startswith("|")
