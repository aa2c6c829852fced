"""Decisions on native's kernels: what can be decided, what it may gain, and how it is written.

kernel_group      the kernels of a program by fusion group, with their work
decide_kernels    the transformation that writes decisions into the targets of native's functions
kernel_question   a decision to make, with the groups that it concerns
answer_features   by which features answers of other models are compared with a question
group_times       the times of a program's kernels, and what a decision can save at most
choice_bundles    which choices are timed together in one program
time_bundles      the times of kernels with choices on them; those that fail cost the others nothing
answered_questions  what choices saved, and the instructions for those that did
timed_questions   which questions can pay, by the times of kernels; their choices, most gain first
tune_kernels      the base of the passes that ask them
"""

from intarsia.tune.kernels.decide_kernels import decide_kernels
from intarsia.tune.kernels.kernel_group import KernelGroup, kernel_groups
from intarsia.tune.kernels.kernel_question import AS_IT_IS, KernelQuestion
from intarsia.tune.kernels.tune_kernels import TuneKernels

__all__ = ["AS_IT_IS", "KernelGroup", "KernelQuestion", "TuneKernels", "decide_kernels", "kernel_groups"]
