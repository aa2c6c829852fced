"""Random straight-line plans on up to three devices, over vectors of one size."""

from __future__ import annotations

from hypothesis import strategies as st
from tests.device_plans import device_plan

from intarsia.runtime.plan import Copy, ExecutionPlan, RunKernel

KERNELS = ("add", "double", "increment", "view")
"""A plan has each of them once for each device: number 4 * device + position."""
SIZE = 8


@st.composite
def device_plans(draw: st.DrawFn, kind: str = "mock") -> ExecutionPlan:
    """Inputs on any device, kernels on values of their device, copies where there is something to copy."""
    count = draw(st.integers(2, 3))
    places = [draw(st.integers(0, count - 1)) for _ in range(2)]
    steps: list[RunKernel | Copy] = []
    for _ in range(draw(st.integers(1, 14))):
        source = draw(st.integers(0, len(places) - 1))
        device = draw(st.integers(0, count - 1))
        if places[source] != device:
            steps.append(Copy(source, len(places), device))
        else:
            kernel = draw(st.integers(0, len(KERNELS) - 1))
            here = [slot for slot, place in enumerate(places) if place == device]
            second = (draw(st.sampled_from(here)),) if KERNELS[kernel] == "add" else ()
            number = device * len(KERNELS) + kernel
            steps.append(RunKernel(number, (source, *second), (len(places),), device))
        places.append(device)
    results = draw(st.lists(st.integers(0, len(places) - 1), min_size=1, max_size=4))
    names = [f"{kind}:{number}" for number in range(count)]
    return device_plan(names, places, steps, results, inputs=2, size=SIZE)
