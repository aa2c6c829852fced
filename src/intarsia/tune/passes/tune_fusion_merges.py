"""Fusion groups of native that join their readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from intarsia.transform import register_pass
from intarsia.tune.choice import Choice
from intarsia.tune.kernels import KernelGroup, KernelQuestion, TuneKernels, decide_kernels


@register_pass
@dataclass(frozen=True)
class TuneFusionMerges(TuneKernels, opt_level=0):
    """Decides which kernels native computes where their only reader reads them: the counterpart of splitting.

    By rule elementwise operators join what is computed before them, or a reduction that reads them once, and
    moves join products of batches. Others, such as the transposed matrix of a single product, or what a
    softmax or a convolution reads, are kernels of their own. Merged, their result is never stored, but may be
    computed several times.
    """

    def questions(self, groups: Sequence[KernelGroup], target: str) -> list[KernelQuestion]:
        """Return a question for each group without an anchor that one other group reads."""
        questions = []
        for group in groups:
            readers = [other for other in groups if other is not group and _reads(other, group)]
            if not group.rule.anchors and len(readers) == 1:
                settings = {group.key: {"merge": "true"}}
                choice = Choice(decide_kernels, {"settings": settings, "target": target})
                keys = (group.key, readers[0].key)
                questions.append(KernelQuestion(f"reader of {group.label}", keys, {"merged": choice}))
        return questions


def _reads(reader: KernelGroup, group: KernelGroup) -> bool:
    result = group.rule.calls[-1]
    return any(arg is result for call in reader.rule.calls for arg in call.args)
