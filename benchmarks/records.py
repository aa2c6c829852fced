"""Records of a long benchmark in a file, so that the same command resumes after an interruption."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


class Records:
    """A file of JSON lines, each with the parameters and the result of a measurement.

    Args:
        path: Path of the file, which may be missing; None to keep the results in memory only.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._results: dict[str, dict[str, Any]] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                self._read(line)

    def _read(self, line: str) -> None:
        """Read a line; skip it if it was cut off when a run ended."""
        try:
            entry = json.loads(line)
            self._results[_key(entry["asked"])] = entry["found"]
        except (ValueError, KeyError, TypeError):
            return

    def load_or_measure(
        self, parameters: Mapping[str, Any], measure: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Return the result of an earlier measurement, or measure now and save the result.

        Args:
            parameters: All parameters that the result depends on.
            measure: Function that measures.
        """
        key = _key(parameters)
        if key not in self._results:
            self._results[key] = measure()
            if self._path is not None:
                # A torn last line gets its line end first, so that only that line is lost.
                is_torn = self._path.exists() and not self._path.read_bytes().endswith(b"\n")
                with self._path.open("a") as file:
                    entry = json.dumps({"asked": dict(parameters), "found": self._results[key]})
                    file.write("\n" * is_torn + entry + "\n")
        return self._results[key]


def _key(parameters: Mapping[str, Any]) -> str:
    return json.dumps(dict(parameters), sort_keys=True)
