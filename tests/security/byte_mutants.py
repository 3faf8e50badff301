"""Files that go wrong in every way that bytes can, each from its own seed."""

from __future__ import annotations

from random import Random

TOKENS = [
    *(b"\0", b"\n", b"\r", b"\t", b'"', b"'", b",", b";", b".", b"=", b"[", b"]", b"{", b"}", b"#"),
    *(b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xd0", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\\"),
    *(b"\\ud800", b"\\u0000", b"NaN", b"1e999", b"-0", b"9" * 30, b"9" * 5000, b"null", b"true"),
    *(
        b'"""',
        b"'''",
        b"[[",
        b"]]",
        b"a.b.c",
        b"../x",
        b"/dev/zero",
        b"x" * 3000,
        b"\n\n",
        b"[" * 70,
    ),
    *(b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"PK\x03\x04", b"PAR1", b"\x1f\x8b"),
    *(
        b"= 1\n",
        b'= "x"\n',
        b"[settings]\n",
        b"{{",
        b"|",
        b"## ",
        b"- ",
        b"task_type: ",
        b"/(a+)+$/",
    ),
]


def byte_mutant(goods, seed):
    """The file of a seed: one of the good ones, changed none to six times."""
    chance = Random(seed)
    data = bytearray(chance.choice(goods))
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 6))):
        _change(data, goods, chance)
    return bytes(data)


def _change(data, goods, chance):
    at = chance.randrange(len(data) + 1)
    size = chance.choice((1, 1, 2, 4, 16, 200))
    match chance.randrange(8):
        case 0 if at < len(data):
            data[at] = chance.randrange(256)
        case 1 if at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        case 2:
            del data[at : at + size]
        case 3:
            data[at:at] = data[at : at + size] * chance.choice((1, 2, 50))
        case 4:
            data[at:at] = chance.choice(TOKENS)
        case 5:
            token = chance.choice(TOKENS)
            data[at : at + len(token)] = token
        case 6 if chance.random() < 0.3:
            del data[at:]
        case _:
            other = chance.choice(goods)
            start = chance.randrange(len(other) + 1)
            data[at : at + size] = other[start : start + size]
