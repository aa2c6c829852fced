"""Schedules that a search has found, by what they compute: a file that says how kernels are to be made."""

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

VERSION: Final = 1
"""Of the file; raised when older software could misread it."""
_DIGITS: Final = 16
_DIGEST: Final = re.compile(rf"[0-9a-f]{{{_DIGITS}}}")
_HELP: Final = (
    "make it again with intarsia tune --schedules, or leave out -schedules for the default schedules"
)


@dataclass(frozen=True)
class ScheduleBook:
    """Histories of loops by what is computed; names of tensors and axes do not count.

    Attributes:
        histories: By the structural key of a DAG, the JSON text of the steps from its initial state.
    """

    histories: Mapping[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "histories", MappingProxyType(dict(sorted(self.histories.items()))))

    @classmethod
    def of_states(cls, states: Iterable[LoopState]) -> Self:
        """The book of states of loops, each of another DAG; a later one takes the place of an equal DAG's."""
        return cls({structural_key(state.initial_dag): history_text(state) for state in states})

    @classmethod
    def from_text(cls, text: str, where: str) -> Self:
        """The book that `to_text` wrote.

        Args:
            text: What was read.
            where: From where, for errors.

        Raises:
            CompileError: It is something else, or of another version.
        """
        try:
            data = json.loads(text)
            if data["version"] != VERSION:
                problem = f"the schedule book {where} has version {data['version']!r:.40}, expected {VERSION}"
                raise CompileError(problem, help=_HELP)
            return cls({str(key): _text(steps) for key, steps in data["schedules"].items()})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CompileError(f"the schedule book {where} is damaged: {error}", help=_HELP) from error

    @classmethod
    def load(cls, folder: Path, digest: str) -> Self:
        """A book that `save` has written.

        Args:
            folder: Where books are.
            digest: Of the book.

        Raises:
            CompileError: It is not there, or is not what was written.
        """
        path = folder / f"{digest}.json"
        if not _DIGEST.fullmatch(digest):
            expected = f"expected {_DIGITS} hexadecimal digits"
            raise CompileError(f"{digest!r:.80} names no schedule book; {expected}", help=_HELP)
        try:
            text = path.read_text("utf-8")
        except FileNotFoundError:
            raise CompileError(f"there is no schedule book {path}", help=_HELP) from None
        except (OSError, ValueError) as error:
            raise CompileError(f"cannot read the schedule book {path}: {error}", help=_HELP) from error
        book = cls.from_text(text, str(path))
        if book.digest != digest:
            problem = f"the schedule book {path} is damaged: its digest is {book.digest}"
            raise CompileError(problem, help=_HELP)
        return book

    def save(self, folder: Path) -> Path:
        """Write the book as `<digest>.json`, whole or not at all; its place.

        Args:
            folder: Where books are; it is made if it is missing.

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
        """As JSON, a schedule on a line."""
        lines = (f"{json.dumps(key)}: {text}" for key, text in self.histories.items())
        return f'{{"version": {VERSION}, "schedules": {{\n' + ",\n".join(lines) + "\n}}\n"

    @cached_property
    def digest(self) -> str:
        """Hexadecimal, other for other contents."""
        return digest_text([self.to_text()])[:_DIGITS]

    def __hash__(self) -> int:
        return hash(self.digest)

    def __len__(self) -> int:
        return len(self.histories)

    def history(self, key: str) -> str | None:
        """The JSON text of the steps for a structural key; None if the book does not have it."""
        return self.histories.get(key)

    def lookup(self, dag: ComputeDAG) -> LoopState | None:
        """The state of a DAG's loops; None if the book has none, or one that is not possible here.

        That a history is no longer possible costs speed, and not the kernel: other versions know other steps.
        """
        text = self.history(structural_key(dag))
        if text is None:
            return None
        try:
            state = LoopState.replay(dag, map(step_from_json, json.loads(text)))
            infer_bound(dag, state)
        except UsageError:
            return None
        return state


def history_text(state: LoopState) -> str:
    """The steps of a state as JSON."""
    return _text([step_to_json(step) for step in state.transform_steps])


def _text(steps: Any) -> str:
    if not isinstance(steps, list):
        raise TypeError(f"found {steps!r:.40}, expected a list of steps")
    return json.dumps(steps, separators=(",", ":"))
