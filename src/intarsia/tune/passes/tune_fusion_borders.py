"""The borders of native's fusion groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from intarsia.transform import register_pass
from intarsia.tune.kernels import KernelGroup, KernelQuestion, TuneKernels
from intarsia.tune.kernels.kernel_question import question_on


@register_pass
@dataclass(frozen=True)
class TuneFusionBorders(TuneKernels, opt_level=0):
    """Decides where native's kernels end: by rule all operators that can be one kernel are one.

    A group may end behind its convolution, product or reduction, so that the epilogue is a kernel of its own;
    it may begin there, so that what is read in another order is stored in that order first; and attention may
    be three kernels.
    """

    def questions(self, groups: Sequence[KernelGroup], target: str) -> list[KernelQuestion]:
        """Return a question for each group of several operators."""
        questions = []
        for group in groups:
            settings = {name: {"borders": text} for name, text in _borders(group).items()}
            if settings:
                questions.append(question_on(group, "kernels", settings, target))
        return questions


def _borders(group: KernelGroup) -> dict[str, str]:
    """Return the places at which a group may be split, by name of the choice."""
    last, anchors = len(group.rule.calls) - 1, group.rule.anchors
    if not last:
        return {}
    if not anchors:
        return {"each operator apart": _text(range(last))}
    choices = {}
    if len(anchors) > 1:
        choices["products apart"] = _text(anchors if anchors[-1] < last else anchors[:-1])
    if anchors[-1] < last:
        choices["epilogue apart"] = _text([anchors[-1]])
    if anchors[0]:
        choices["prologue apart"] = _text(range(anchors[0]))
    return choices


def _text(positions: Iterable[int]) -> str:
    return "+".join(map(str, positions))
