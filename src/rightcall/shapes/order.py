"""Members of an object where an engine has no word for any order: all orders if they are few, else the declared one.

Up to `MAX_ANY` members every set of members still to come is a rule of its own; beyond that they come as declared, and
undeclared ones behind them.
"""

from __future__ import annotations

from rightcall.shapes.algebra import EMPTY, NEVER, Alt, AnyOrder, Node, Ref, alt, maybe, repeat, seq

MAX_ANY = 4


def declared_order(node: AnyOrder, prefix: str) -> tuple[Node, dict[str, Node]]:
    """The start, and rules for what may follow each member up to the first that is required. `least` and `most` are not
    counted here."""
    members = node.members
    needed = next((at for at, member in enumerate(members) if member.required), len(members))
    following = [seq(node.separator, member.node) for member in members]
    rest = [piece if member.required else maybe(piece) for piece, member in zip(following, members, strict=True)]
    extra = repeat(seq(node.separator, node.extra)) if node.extra is not None else EMPTY
    if members and not needed:
        return seq(members[0].node, *rest[1:], extra), {}
    rules: dict[str, Node] = {f"{prefix}-t{needed + 1}": seq(*rest[needed + 1 :], extra)}
    after: Node = Ref(f"{prefix}-t{needed + 1}")
    if needed < len(members):
        start = seq(members[needed].node, after)
        rules[f"{prefix}-t{needed}"] = seq(following[needed], after)
        after = Ref(f"{prefix}-t{needed}")
    else:
        start = maybe(seq(node.extra, after)) if node.extra is not None else EMPTY
    for at in range(needed - 1, -1, -1):
        rules[f"{prefix}-f{at + 1}"] = start
        start = alt(seq(members[at].node, after), Ref(f"{prefix}-f{at + 1}"))
        rules[f"{prefix}-t{at}"] = seq(rest[at], after)
        after = Ref(f"{prefix}-t{at}")
    rules.pop(f"{prefix}-t0", None)
    return start, rules


def all_orders(node: AnyOrder, prefix: str) -> tuple[Node, dict[str, Node]]:
    """The start, and a rule for every set of members that were written."""
    rules: dict[str, Node] = {}
    everything = (1 << len(node.members)) - 1
    needed = sum(1 << at for at, member in enumerate(node.members) if member.required)
    most = len(node.members) if node.most is None else node.most

    def more(written: int, first: bool) -> Node:
        options: list[Node] = []
        separator = EMPTY if first else node.separator
        if written.bit_count() < most:
            for at, member in enumerate(node.members):
                if not written >> at & 1:
                    options.append(seq(separator, member.node, _after(written | 1 << at)))
        if node.extra is not None:
            options.append(seq(separator, node.extra, _after(written)))
        if written & needed == needed and written.bit_count() >= node.least:
            options.append(EMPTY)
        return Alt(tuple(options)) if len(options) != 1 else options[0]

    def _after(written: int) -> Node:
        done = written == everything or written.bit_count() >= most
        if done and node.extra is None:
            return EMPTY if written & needed == needed and written.bit_count() >= node.least else NEVER
        name = f"{prefix}-{written}"
        if name not in rules:
            rules[name] = EMPTY
            rules[name] = more(written, False)
        return Ref(name)

    return more(0, True), rules
