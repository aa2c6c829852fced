"""Schedule logs: files with the schedules that a search has found, by structural key of the computation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

from intarsia.native.dag import ComputeDAG, structural_key
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.step_json import step_from_json
from intarsia.native.loop_state.step_record import step_to_json
from intarsia.native.lowering import infer_bound
from intarsia.support.digest import digest_text
from intarsia.support.errors import CompileError, UsageError
from intarsia.support.files import output_error, write_text
from intarsia.support.json_text import parse_json_text

VERSION: Final = 1
"""Version of the file format; raised when older software could misread it."""
_DIGITS: Final = 16
_DIGEST: Final = re.compile(rf"[0-9a-f]{{{_DIGITS}}}")
_HELP: Final = (
    "make it again with intarsia tune --schedules, or leave out -schedules for the default schedules"
)


@dataclass(frozen=True)
class ScheduleLog:
    """A schedule log: histories of loops by structural key, which ignores names of tensors and axes.

    Attributes:
        histories: JSON texts of the steps from the initial state, by structural key of the DAG.
    """

    histories: Mapping[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "histories", MappingProxyType(dict(sorted(self.histories.items()))))

    def __reduce__(self) -> tuple[type[ScheduleLog], tuple[dict[str, str]]]:
        """Return what pickle makes an equal log of; it writes no read-only mapping."""
        return type(self), (dict(self.histories),)

    @classmethod
    def of_states(cls, states: Iterable[LoopState]) -> Self:
        """Return the log of loop states; of equal DAGs the last one counts."""
        return cls({structural_key(state.initial_dag): history_text(state) for state in states})

    @classmethod
    def from_text(cls, text: str, where: str) -> Self:
        """Parse the result of `to_text`.

        Args:
            text: Text of the file.
            where: Name of the source, for errors.

        Raises:
            CompileError: The text is damaged, or of another version.
        """
        try:
            data = parse_json_text(text)
            if data["version"] != VERSION:
                problem = f"the schedule log {where} has version {data['version']!r:.40}, expected {VERSION}"
                raise CompileError(problem, help=_HELP)
            return cls({str(key): _text(steps) for key, steps in data["schedules"].items()})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CompileError(f"the schedule log {where} is damaged: {error}", help=_HELP) from error

    @classmethod
    def load(cls, folder: Path, digest: str) -> Self:
        """Load a log that `save` has written.

        Args:
            folder: Folder of logs.
            digest: Digest of the log.

        Raises:
            CompileError: The file is missing or damaged.
        """
        path = folder / f"{digest}.json"
        if not _DIGEST.fullmatch(digest):
            expected = f"expected {_DIGITS} hexadecimal digits"
            raise CompileError(f"{digest!r:.80} names no schedule log; {expected}", help=_HELP)
        try:
            text = path.read_text("utf-8")
        except FileNotFoundError:
            raise CompileError(f"there is no schedule log {path}", help=_HELP) from None
        except (OSError, ValueError) as error:
            raise CompileError(f"cannot read the schedule log {path}: {error}", help=_HELP) from error
        log = cls.from_text(text, str(path))
        if log.digest != digest:
            problem = f"the schedule log {path} is damaged: its digest is {log.digest}"
            raise CompileError(problem, help=_HELP)
        return log

    def save(self, folder: Path) -> Path:
        """Write the log as `<digest>.json`, whole or not at all, and return its path.

        Args:
            folder: Folder of logs, created if it is missing.

        Raises:
            OutputError: The file system refused.
        """
        path = folder / f"{self.digest}.json"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise output_error(folder, error) from error
        write_text(path, self.to_text())
        return path

    def to_text(self) -> str:
        """Return the log as JSON, with one schedule per line."""
        lines = (f"{json.dumps(key)}: {text}" for key, text in self.histories.items())
        return f'{{"version": {VERSION}, "schedules": {{\n' + ",\n".join(lines) + "\n}}\n"

    @cached_property
    def digest(self) -> str:
        """Hexadecimal digest of the contents."""
        return digest_text([self.to_text()])[:_DIGITS]

    def __hash__(self) -> int:
        return hash(self.digest)

    def __len__(self) -> int:
        return len(self.histories)

    def history(self, key: str) -> str | None:
        """Return the JSON text of the steps for a structural key; None if the log does not contain it."""
        return self.histories.get(key)

    def lookup(self, dag: ComputeDAG) -> LoopState | None:
        """Return the logged state of a DAG's loops; None if there is none, or it is not possible here.

        Steps differ between versions. A history that is no longer possible is ignored, which only costs
        speed.
        """
        text = self.history(structural_key(dag))
        if text is None:
            return None
        try:
            state = LoopState.replay(dag, map(step_from_json, parse_json_text(text)))
            infer_bound(dag, state)
        except UsageError:
            return None
        return state


def history_text(state: LoopState) -> str:
    """Return the steps of a state as JSON."""
    return _text([step_to_json(step) for step in state.transform_steps])


def _text(steps: Any) -> str:
    if not isinstance(steps, list):
        raise TypeError(f"found {steps!r:.40}, expected a list of steps")
    return json.dumps(steps, separators=(",", ":"))
