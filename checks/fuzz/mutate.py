"""Random changes of bytes, which keep most of a file and so get far into its reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

_NUMBERS: Final = (
    b"0",
    b"-1",
    b"1",
    b"2147483648",
    b"9223372036854775808",
    b"1e400",
    b"NaN",
    b"0.5",
    b"null",
)
_TEXTS: Final = (b'""', b"[]", b"{}", b"\xff\xfe", b"../x", b"A" * 300, b"(" * 50, b"[" * 2000, b"\x00")
_WORDS: Final = tuple(value.to_bytes(8, "little") for value in (0, 1, 2**31, 2**32, 2**63, 2**64 - 1))


def mutated(seeds: Sequence[bytes], random: Random) -> bytes:
    """Return one of the seeds with one to six random changes."""
    data = bytearray(random.choice(seeds))
    for _ in range(random.choice((1, 1, 2, 3, 6))):
        random.choice(_CHANGES)(data, seeds, random)
    return bytes(data)


def _span(data: bytearray, random: Random) -> slice:
    start = random.randrange(len(data) + 1)
    return slice(start, min(len(data), start + random.choice((1, 1, 2, 4, 8, 32, 256))))


def _flip_bit(data: bytearray, _: Sequence[bytes], random: Random) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _set_byte(data: bytearray, _: Sequence[bytes], random: Random) -> None:
    if data:
        data[random.randrange(len(data))] = random.randrange(256)


def _truncate(data: bytearray, _: Sequence[bytes], random: Random) -> None:
    del data[random.randrange(len(data) + 1) :]


def _delete(data: bytearray, _: Sequence[bytes], random: Random) -> None:
    del data[_span(data, random)]


def _repeat(data: bytearray, _: Sequence[bytes], random: Random) -> None:
    span = _span(data, random)
    data[span] = bytes(data[span]) * random.choice((2, 3, 100))


def _splice(data: bytearray, seeds: Sequence[bytes], random: Random) -> None:
    other = bytearray(random.choice(seeds))
    data[_span(data, random)] = other[_span(other, random)]


def _insert(data: bytearray, _: Sequence[bytes], random: Random) -> None:
    data[_span(data, random)] = random.choice((*_NUMBERS, *_TEXTS, *_WORDS))


def _change_number(data: bytearray, _: Sequence[bytes], random: Random) -> None:
    """Replace a run of digits, in texts."""
    starts = [index for index, byte in enumerate(data) if 48 <= byte <= 57]
    if starts:
        start = end = random.choice(starts)
        while end < len(data) and 48 <= data[end] <= 57:
            end += 1
        data[start:end] = random.choice(_NUMBERS)


_CHANGES: Final[Sequence[Callable[[bytearray, Sequence[bytes], Random], None]]] = (
    _flip_bit,
    _set_byte,
    _truncate,
    _delete,
    _repeat,
    _splice,
    _insert,
    _change_number,
)
