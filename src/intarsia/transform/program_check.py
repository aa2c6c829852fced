"""The rules that every program keeps: those of the language, and those that packages of passes register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from intarsia.ir import IRModule
from intarsia.ir.verify import verify
from intarsia.support.registry import Registry
from intarsia.transform.pass_packages import load_pass_packages

ProgramCheck: TypeAlias = Callable[[IRModule], None]
"""Raises VerifyError for a program that breaks rules; it checks those of the language too."""

PROGRAM_CHECKS: Final[Registry[ProgramCheck]] = Registry("program check")


def check_program(mod: IRModule) -> None:
    """Check a program against the rules of the language, and those of its operators where they are known.

    This layer contains no operator: the passes register what checks calls of them.

    Raises:
        VerifyError: The program breaks a rule.
    """
    load_pass_packages()  # they register checks
    names = tuple(PROGRAM_CHECKS)
    if not names:
        verify(mod)
    for name in names:
        PROGRAM_CHECKS[name](mod)
