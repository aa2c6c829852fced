"""What is done after every pass, so that a fact of the program that most passes know nothing of stays whole.

A package registers how it completes a fact; each pass declares in its `PassInfo` whether it takes care of
that fact itself. This layer contains neither the fact nor its completion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from intarsia.ir import IRModule
from intarsia.support.registry import Registry
from intarsia.transform.pass_info import PassInfo

if TYPE_CHECKING:
    from intarsia.transform.pass_context import PassContext

Completion: TypeAlias = "Callable[[IRModule, IRModule, PassInfo, PassContext], IRModule]"
"""Given the program before and after a pass, the pass and its context: the program with the fact complete."""

COMPLETIONS: Final[Registry[Completion]] = Registry("completion")


def completed(before: IRModule, after: IRModule, info: PassInfo, ctx: PassContext) -> IRModule:
    """What a pass has made of a program, with all registered facts complete; `after` itself if they were."""
    if after is not before:
        for name in COMPLETIONS:
            after = COMPLETIONS[name](before, after, info, ctx)
    return after
