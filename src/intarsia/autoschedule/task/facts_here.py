"""The peaks of the GPU that schedules are searched for."""

from __future__ import annotations

from intarsia.native.gpu.static_cost import FACTS, GpuFacts
from intarsia.runtime.cuda.gpu_facts import gpus_here
from intarsia.support.errors import CompileError
from intarsia.toolchain.native.gpu.gpu_kernel import OLDEST, model_for


def facts_here() -> GpuFacts:
    """Return the peaks of this machine's first GPU, or of the oldest model that code is generated for."""
    gpus = gpus_here().facts
    try:
        return FACTS[model_for(gpus[0].capability)] if gpus else FACTS[OLDEST]
    except CompileError:  # an older GPU, which runs none of it
        return FACTS[OLDEST]
