"""Replies that go wrong in every way that a grammar of replies knows, each from its own seed.

A mutant begins as a reply that keeps its contract. Nodes of its tree are replaced, left out,
doubled, renamed or moved; then its text is cut, wrapped, spliced or broken.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random

from tests.unit.kinds.tables import lines

NUMBERS = [
    *lines("""
0
1
2.5
5
5.0
50
-1
100
1e1
0.5e1
60.000000000000001
"""),
    *lines("""
1e999
-1e999
-0
-0.0
1e-400
4.9e-324
1.7976931348623157e308
0.1
"""),
    *("9" * 20, "9" * 400, "-" + "9" * 400, "9" * 5000, "1." + "3" * 5000, "1e" + "9" * 30),
]
STRINGS = [
    *lines("""
""
" "
"A"
"B"
"A+"
"tie"
"TIE"
"uncertain"
"high"
"High"
"""),
    *lines("""
"fact"
"creative"
"poetry"
"no evidence found"
"scatter more."
"5"
"""),
    *lines(r"""
"\u0000"
"\ud800"
"\ud834\udd1e"
"\udc00\ud800"
"\u202e"
"|"
"""),
    *lines(r"""
"a\tb\nc"
"“short waves” scatter"
"{\"a\":1}"
"```"
"</think>"
"\\"
"""),
    *('"' + "x" * 5000 + '"', '"' + "e\\u0301" * 300 + '"', '"' + "…" * 300 + '"'),
]
OTHERS = [
    *lines("""
null
true
false
[]
{}
[[]]
[null]
{"":{}}
["A", "A"]
{"a":1}
"""),
    *("[" * 40 + "]" * 40, "[" * 70 + "]" * 70, '{"a":' * 40 + "1" + "}" * 40),
]
BROKEN = [
    *lines("""
NaN
-Infinity
Infinity
01
+1
.5
1.
1e
0x10
1_000
٣
"""),
    *[
        *lines("""
'A'
undefined
None
{
}
"
[1,]
{"a":1,}
// x
"a" "b"
"""),
        "",
    ],
    *("[" * 3000, '{"a":' * 3000, "[1," * 200, '{"a":1,"a":2}', '"\x01"', '"\\x"'),
]
VALUES = NUMBERS + STRINGS + OTHERS + BROKEN
KEYS = [
    *lines("""
meta
score
winner
C1
mark
notes
\\ud800
\\u0000
критерий
a.b
"""),
    "",
]
BITS = [
    *lines("""
\u0000
\u001b
\ud800
\udfff
\ufeff
\u200b
|
```
<think>
"""),
    "\u2028",
]
BITS += [
    *lines("""
</think>
{
}
[
]
"
\\
,
:
\\u
\\ud83d
𝄞
e\u0301
"""),
    "\n",
]
WRAPPINGS = [
    *[
        *lines("""
Here: ¤
¤ So.
<think>hm</think>¤
<think>¤
¤</think>
"""),
        "```json\n¤\n```",
        "```\n¤",
    ],
    *[
        *lines("""
\ufeff¤
{¤}
[¤]
¤¤
{x} ¤ {
I'm sorry: ¤
> ¤
| ¤ |
\\boxed{¤}
"""),
        "¤\n¤",
    ],
]
ROWS = [
    *("A | A+ | tie | tie | tie | tie | notes", "p | B | B+ | B+ | B+ | B+ | B+ | n | m", "|A|A+|"),
    *(
        "A | a+ | TIE | | tie | tie",
        "| --- | --- |",
        "winner | C1 | C2 | C3 | C4 | C5 | notes",
        "|",
    ),
    *(
        "**tie** | tie | tie | tie | tie | tie",
        "p | uncertain | A+ | B+ | tie | tie | tie",
        "A \\| B",
    ),
]


@dataclass(frozen=True)
class Leaf:
    """A value as JSON spells it, or fails to."""

    text: str


@dataclass(frozen=True)
class Member:
    """A key as JSON spells it between quotation marks, and what stands under it."""

    key: str
    value: Node


Node = Leaf | list[Member] | tuple["list[Node]"]
"""A tuple of one holds the items of an array."""


def mutant(goods, seed):
    """The reply of a seed: one of the good ones, changed none to four times."""
    chance = Random(seed)
    tree = _tree(chance.choice(goods), chance)
    for _ in range(chance.choice((0, 0, 1, 1, 1, 2, 3))):
        tree = _changed(tree, chance)
    text = _written(tree)
    for _ in range(chance.choice((0, 0, 0, 1, 1, 2))):
        text = chance.choice(_BREAKS)(text, chance)
    return _as_bytes(text, chance) if chance.random() < 0.05 else text


def _tree(value, chance):
    if isinstance(value, dict):
        return [Member(json.dumps(key)[1:-1], _tree(inner, chance)) for key, inner in value.items()]
    if isinstance(value, list):
        return ([_tree(inner, chance) for inner in value],)
    return Leaf(json.dumps(value, ensure_ascii=chance.random() < 0.5))


def _written(node):
    if isinstance(node, Leaf):
        return node.text
    if isinstance(node, tuple):
        return "[" + ", ".join(map(_written, node[0])) + "]"
    return "{" + ", ".join(f'"{one.key}": {_written(one.value)}' for one in node) + "}"


def _changed(node, chance):
    """The tree with one node changed: the deeper it goes, the likelier it stops."""
    if isinstance(node, Leaf) or chance.random() < 0.25:
        return _replaced(node, chance)
    if isinstance(node, tuple):
        items = list(node[0])
        if items and chance.random() < 0.7:
            place = chance.randrange(len(items))
            items[place] = _changed(items[place], chance)
            return (items,)
        return (chance.choice((items * 4, items[:-1], [*items, _odd(chance)], [(items,)])),)
    members = list(node)
    if not members or chance.random() < 0.3:
        return _reshaped(members, chance)
    place = chance.randrange(len(members))
    members[place] = Member(members[place].key, _changed(members[place].value, chance))
    return members


def _reshaped(members, chance):
    """An object with a member more, less, doubled, renamed, or in another place."""
    added = Member(chance.choice(KEYS), _odd(chance))
    if not members:
        return [added]
    place = chance.randrange(len(members))
    chosen = members[place]
    rest = members[:place] + members[place + 1 :]
    shuffled = chance.sample(members, len(members))
    swapped = [Member(a.key, b.value) for a, b in zip(members, shuffled, strict=True)]
    return chance.choice(
        (
            rest,
            [*members, added],
            [*members, Member(chosen.key, added.value)],
            [*rest, Member(added.key, chosen.value)],
            shuffled,
            swapped,
        )
    )


def _replaced(node, chance):
    if chance.random() < 0.15:
        return chance.choice((([node],), [Member("a", node)]))
    # What is odd in the same way as what stood there gets further than what is of another kind.
    alike = NUMBERS if isinstance(node, Leaf) and node.text[:1].isdigit() else STRINGS
    return Leaf(chance.choice(alike)) if chance.random() < 0.5 else _odd(chance)


def _odd(chance):
    if chance.random() < 0.1:
        return Leaf(chance.choice(BROKEN))
    return Leaf(chance.choice(chance.choice((NUMBERS, STRINGS, OTHERS))))


def _cut(text, chance):
    return text[: chance.randrange(len(text) + 1)]


def _wrapped(text, chance):
    return chance.choice(WRAPPINGS).replace("¤", text)


def _spliced(text, chance):
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice((*BITS, *VALUES)) + text[at:]


def _holed(text, chance):
    at = chance.randrange(len(text) + 1)
    return text[:at] + text[at + chance.choice((1, 1, 1, 5, 50)) :]


def _beside_rows(text, chance):
    rows = "\n".join(chance.choices(ROWS, k=chance.choice((1, 1, 2, 3))))
    return chance.choice((rows, f"{rows}\n{text}", f"{text}\n{rows}"))


_BREAKS = (_cut, _wrapped, _wrapped, _spliced, _spliced, _holed, _beside_rows)


def _as_bytes(text, chance):
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    if data and chance.random() < 0.5:
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)
