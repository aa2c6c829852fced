"""Benchmarks that go on where they were interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.records import Records


def test_what_was_found_is_not_measured_again(tmp_path: Path) -> None:
    calls: list[int] = []

    def measure() -> dict[str, Any]:
        calls.append(1)
        return {"ratio": len(calls)}

    file = tmp_path / "records.jsonl"
    asked = {"model": "a", "threads": 1}
    assert Records(file).load_or_measure(asked, measure) == {"ratio": 1}
    assert Records(file).load_or_measure({"threads": 1, "model": "a"}, measure) == {"ratio": 1}
    assert Records(file).load_or_measure({**asked, "threads": 2}, measure) == {"ratio": 2}
    assert Records(None).load_or_measure(asked, measure) == {"ratio": 3}


def test_a_torn_line_is_left_out_and_harms_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    Records(file).load_or_measure({"model": "a"}, lambda: {"ratio": 1})
    Records(file).load_or_measure({"model": "b"}, lambda: {"ratio": 2})
    file.write_bytes(file.read_bytes()[:-10])
    records = Records(file)
    assert records.load_or_measure({"model": "b"}, lambda: {"ratio": 3}) == {"ratio": 3}
    again = Records(file)
    assert again.load_or_measure({"model": "a"}, lambda: {"ratio": 0}) == {"ratio": 1}
    assert again.load_or_measure({"model": "b"}, lambda: {"ratio": 0}) == {"ratio": 3}
