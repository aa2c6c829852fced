"""Repetitions in a row of symbols."""

from __future__ import annotations

from math import log2

import pytest

from intarsia.tune.repeated.runs import Run, _HashedText, find_runs


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("", []),
        ("abc", []),
        ("aaaa", [(0, 4, 1)]),
        ("xababay", [(1, 6, 2)]),
        ("abcabc", [(0, 6, 3)]),
        ("aabaab", [(0, 2, 1), (3, 5, 1), (0, 6, 3)]),
        ("mississippi", [(2, 4, 1), (5, 7, 1), (8, 10, 1), (1, 8, 3)]),
    ],
)
def test_runs(text: str, runs: list[tuple[int, int, int]]) -> None:
    assert list(find_runs([ord(letter) for letter in text])) == [Run(*each) for each in runs]


@pytest.mark.parametrize("period", [1, 2, 5, 4999])
def test_ten_thousand_symbols_take_few_comparisons(period: int, monkeypatch: pytest.MonkeyPatch) -> None:
    size, compared = 10_000, 0
    plain = _HashedText._of

    def counted(self: _HashedText, start: int, length: int) -> int:
        nonlocal compared
        compared += 1
        return plain(self, start, length)

    monkeypatch.setattr(_HashedText, "_of", counted)
    found = list(find_runs([at % period for at in range(size)]))
    assert found == [Run(0, size, period)]
    assert compared <= size * log2(size)
