"""Measurements of a long benchmark in a file, so that the same command goes on where it was interrupted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


class Records:
    """A file of JSON lines, each with what was asked and what was found; without a file nothing is kept.

    Args:
        path: The file; it need not exist.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[str, dict[str, Any]] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                self._read(line)

    def _read(self, line: str) -> None:
        """A line that was cut off when a run ended is left out."""
        try:
            entry = json.loads(line)
            self._known[_key(entry["asked"])] = entry["found"]
        except (ValueError, KeyError, TypeError):
            return

    def found(self, asked: Mapping[str, Any], measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What was found for a question before, or what `measure` finds now, which is kept.

        Args:
            asked: All that the answer depends on: names and numbers.
            measure: Answers it.
        """
        key = _key(asked)
        if key not in self._known:
            self._known[key] = measure()
            if self._path is not None:
                begins_anew = self._path.exists() and not self._path.read_bytes().endswith(b"\n")
                with self._path.open("a") as file:
                    entry = json.dumps({"asked": dict(asked), "found": self._known[key]})
                    file.write("\n" * begins_anew + entry + "\n")
        return self._known[key]


def _key(asked: Mapping[str, Any]) -> str:
    return json.dumps(dict(asked), sort_keys=True)
