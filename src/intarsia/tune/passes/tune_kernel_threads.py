"""Kernels of native that run on one thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.transform import register_pass
from intarsia.tune.kernels import KernelGroup, KernelQuestion, TuneKernels
from intarsia.tune.kernels.kernel_question import question_on

_START: Final = 20e-6
"""Seconds that starting and joining threads takes at most, on a machine that does other work as well."""


@register_pass
@dataclass(frozen=True)
class TuneKernelThreads(TuneKernels, opt_level=0):
    """Decides which of native's kernels run on one thread: small ones finish before others have begun.

    By rule a kernel is parallel from a number of elements on, whatever an element costs.
    """

    def questions(self, groups: Sequence[KernelGroup], target: str) -> list[KernelQuestion]:
        """Return a question for each group of a region with several threads."""
        return [
            question_on(group, "threads", {"one": {"threads": "1"}}, target, _START * group.calls)
            for group in groups
            if group.threads > 1
        ]
