"""Random changes of values, tokens and cells: what comes out is well formed, and gets past the first check.

A changed byte mostly ends in "this is no JSON" or "the digest is wrong". These changes keep the form of an
input and change its meaning. Each is used for half of the runs, the others change bytes.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from random import Random
from typing import Any, Final, TypeAlias

from checks.fuzz.mutate import mutated

Mutation: TypeAlias = Callable[[Sequence[bytes], Random], bytes]
"""Returns one of the seeds with random changes."""

_TOKEN: Final = re.compile(rb"[A-Za-z_][A-Za-z_0-9.]*|[0-9]+|\s+|.", re.DOTALL)
_TOKENS: Final = (
    b"0",
    b"-1",
    b"99999999999999999999",
    b"1e400",
    b"nan",
    b"(",
    b")",
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
)
_DEEP: Final = 60
"""Levels of a deep list."""
_JOURNAL: Final = slice(18, 20)
"""Bytes of an SQLite file that name the kind of its journal, for writing and reading."""


def by_half(change: Mutation) -> Mutation:
    """Return a mutation that changes bytes in the other half of the cases."""

    def either(seeds: Sequence[bytes], random: Random) -> bytes:
        return (change if random.random() < 0.5 else mutated)(seeds, random)

    return either


def json_mutated(seeds: Sequence[bytes], random: Random) -> bytes:
    """Return JSON with one to four changed values; if each line is JSON, one line is changed."""
    seed = random.choice(seeds)
    if (changed := _changed_json(seed, random)) is not None:
        return changed
    lines = seed.split(b"\n")
    number = random.choice([index for index, line in enumerate(lines) if line.strip()] or [0])
    if (changed := _changed_json(lines[number], random)) is None:
        return mutated(seeds, random)
    return b"\n".join((*lines[:number], changed, *lines[number + 1 :]))


def _changed_json(text: bytes, random: Random) -> bytes | None:
    try:
        holder = [json.loads(text)]
    except ValueError:
        return None
    for _ in range(random.choice((1, 1, 2, 4))):
        _change_value(holder, random)
    return json.dumps(holder[0] if holder else None).encode() + text[len(text.rstrip()) :]


def first_line_mutated(seeds: Sequence[bytes], random: Random) -> bytes:
    """Return an input of which the first line is JSON, with changed values there."""
    head, end, rest = random.choice(seeds).partition(b"\n")
    changed = json_mutated([head.rstrip(b" ")], random)
    # As long as before, if possible: what follows stands at a multiple of 64.
    return changed.ljust(len(head)) + end + rest


def tokens_mutated(seeds: Sequence[bytes], random: Random) -> bytes:
    """Return a text with one to six changed tokens, most of which come from the seeds."""
    tokens = _TOKEN.findall(random.choice(seeds))
    others = [*_TOKEN.findall(random.choice(seeds)), *_TOKENS]
    for _ in range(random.choice((1, 1, 2, 3, 6))):
        start = random.randrange(len(tokens) + 1)
        end = min(len(tokens), start + random.choice((0, 1, 1, 2, 5, 20)))
        first = random.randrange(len(others))
        given = others[first : first + random.choice((0, 1, 1, 2, 5, 20))]
        tokens[start:end] = given
    return b"".join(tokens)


def cells_mutated(seeds: Sequence[bytes], random: Random) -> bytes:
    """Return an SQLite file with one to three changed cells, rows, columns or tables."""
    seed = random.choice(seeds)
    with closing(sqlite3.connect(":memory:")) as connection:
        # A file with a write-ahead log (2) cannot be opened in memory, one with a rollback journal (1) can.
        connection.deserialize(_with_journal(seed, 1))
        for _ in range(random.choice((1, 1, 2, 3))):
            _change_cell(connection, random)
        connection.commit()
        return _with_journal(connection.serialize(), seed[_JOURNAL.start])


def _with_journal(data: bytes, kind: int) -> bytes:
    """Return an SQLite file with another kind of journal in its header."""
    return data[: _JOURNAL.start] + bytes((kind, kind)) + data[_JOURNAL.stop :]


def _change_cell(connection: sqlite3.Connection, random: Random) -> None:
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    if not names:
        return
    table = random.choice(sorted(names))
    columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
    column = random.choice(columns)
    stored = connection.execute(f'SELECT "{column}" FROM "{table}" LIMIT 1').fetchone()
    value = _odd_cell(random, None if stored is None else stored[0])
    statements = (
        *[(f'UPDATE "{table}" SET "{column}" = ?', (value,))] * 8,
        (f'DELETE FROM "{table}"', ()),
        (f'DROP TABLE "{table}"', ()),
        (f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "other"', ()),
        (f'ALTER TABLE "{table}" ADD COLUMN "more"', ()),
    )
    statement, values = random.choice(statements)
    try:
        connection.execute(statement, values)
    except sqlite3.Error:  # a constraint, or a column of that name
        return


def _odd_cell(random: Random, stored: object) -> Any:
    """Return a value for a cell; if JSON stands there, mostly other JSON."""
    if isinstance(stored, str) and random.random() < 0.7:
        return json_mutated([stored.encode()], random).decode("utf-8", "replace")
    return random.choice((None, 0, -1, 1.5, float("inf"), 2**62, "", "x", "[]", "{}", b"\xff\x00", "9" * 400))


def _change_value(root: list[Any], random: Random) -> None:
    """Change one value below a list in place."""
    places = _places(root)
    if not places:
        return
    container, key = random.choice(places)
    other_container, other_key = random.choice(places)
    value = container[key]
    match random.randrange(7):
        case 0 if container is not root:
            del container[key]
        case 1:
            container[key] = [value]
        case 2:
            # A copy: a value that contains itself is no JSON.
            container[key] = json.loads(json.dumps(other_container[other_key]))
        case 3 if isinstance(value, list):
            value.extend(json.loads(json.dumps(value)) * random.choice((1, 1, 40)))
        case 4 if isinstance(container, dict):
            container[random.choice(("", "x", "name", "shape", "\0"))] = container.pop(key)
        case 5 if isinstance(value, (int, float)) and not isinstance(value, bool):
            container[key] = value + random.choice((-1, 1, 64, -(2**31), 2**31, 2**63))
        case _:
            container[key] = _odd_value(random)


def _places(root: list[Any]) -> list[tuple[Any, Any]]:
    """Return the container and key of every value below a list."""
    places: list[tuple[Any, Any]] = []
    pending: list[Any] = [root]
    while pending:
        container = pending.pop()
        for key in list(container.keys() if isinstance(container, dict) else range(len(container))):
            places.append((container, key))
            if isinstance(container[key], (dict, list)):
                pending.append(container[key])
    return places


def _odd_value(random: Random) -> Any:
    deep: list[Any] = []
    for _ in range(_DEEP):
        deep = [deep]
    numbers = (0, -1, 1, 7, 1.5, -0.0, 1e308, float("nan"), float("inf"), 2**31, 2**63, 2**64, 10**40)
    texts = ("", "x", "\0", "../x", "/dev/zero", "A" * 300, "float32", "\ud800")
    others: tuple[Any, ...] = (None, True, False, [], {}, [[]], [None], {"x": 1}, deep)
    return random.choice((*numbers, *texts, *others))
