"""Diagnostics of passes: remarks, missed optimisations, warnings (seed pass_infra, diag_ctx)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from intarsia.ir import Expr


class DiagnosticLevel(StrEnum):
    """How serious it is.

    An error or warning is about the program; a remark is about what the pass did with it; a missed
    optimisation says what it did not do, and why.
    """

    ERROR = "error"
    WARNING = "warning"
    REMARK = "remark"
    MISSED = "missed"


@dataclass(frozen=True, slots=True)
class DiagnosticNote:
    """A further expression that a diagnostic is about.

    Attributes:
        expr: The expression.
        text: Its part in the diagnostic, after its name: "uses its result".
    """

    expr: Expr
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A statement of a pass about an expression of the program that it was given.

    Attributes:
        pass_name: The pass.
        expr: The expression.
        level: Its level.
        text: The statement, which goes on after the name of the expression: "keeps its layout: ...".
        notes: Further expressions.
    """

    pass_name: str
    expr: Expr
    level: DiagnosticLevel
    text: str
    notes: tuple[DiagnosticNote, ...] = ()


_RUNNING: Final[ContextVar[tuple[str, ...]]] = ContextVar("running passes", default=())


@contextmanager
def running(pass_name: str) -> Iterator[None]:
    """Note that a pass runs in this thread or task during a block."""
    token = _RUNNING.set((*_RUNNING.get(), pass_name))
    try:
        yield
    finally:
        _RUNNING.reset(token)


def running_pass() -> str:
    """Return the name of the innermost pass that runs in this thread or task; "" for none."""
    stack = _RUNNING.get()
    return stack[-1] if stack else ""
