"""What limits a kernel is read from its loops and its work, on a machine that is given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.bounds import Bound
from benchmarks.kernel_limits import Kernel, Limit, Machine
from tests.unit.native.graph.test_plan_region import planned

from intarsia.ir import Constant, DType, Function, TensorType, Var
from intarsia.native.graph import plan_region
from intarsia.native.machine.isa import Isa
from intarsia.op import call
from intarsia.op.infer import typed
from intarsia.runtime.kernel_profiler import KernelWork, ProfiledKernel, SourceNode
from intarsia.runtime.profile import ProfileRow
from intarsia.target.machine_families import family_model

HERTZ = 4e9
NODE = SourceNode("n", "N")


def _machine(threads: int = 1) -> Machine:
    isa = Isa("x86_64", "haswell", ("avx2", "fma"), (), 2, family_model("haswell"))
    return Machine(isa, threads, 32 * HERTZ * threads, HERTZ)


def _kernel(
    program: str, *constants: np.ndarray, flop: int, size: int, seconds: float, threads: int = 1
) -> Kernel:
    """Return the only kernel of a program, with its work and time."""
    (plan,) = planned(program, *constants).kernels
    described = ProfiledKernel(plan.name, (NODE,), NODE, KernelWork(flop, size))
    return Kernel(ProfileRow("native", "main", described, 1, seconds), plan, _machine(threads), streams=False)


def _matrix(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


MIB = 1 << 20


@pytest.mark.parametrize(
    ("kernel", "limit"),
    [
        (
            _kernel(
                "def @main(%x: Tensor[(256, 512), float32]) { MatMul(%x, meta[Constant][0]) }",
                *(_matrix(512, 512),),
                flop=2 * 256 * 512 * 512,
                size=2 * MIB,
                seconds=2e-3,
            ),
            Limit.ARITHMETIC,
        ),
        (
            _kernel(
                "def @main(%x: Tensor[(1, 512), float32]) { MatMul(%x, meta[Constant][0]) }",
                *(_matrix(512, 16),),
                flop=2 * 512 * 16,
                size=34_880,
                seconds=6e-6,
            ),
            Limit.LATENCY,
        ),
        (
            _kernel(
                "def @main(%x: Tensor[(64, 4096), float32]) { Sigmoid(%x) }",
                flop=0,
                size=2 * MIB,
                seconds=2e-4,
            ),
            Limit.FUNCTIONS,
        ),
        (
            _kernel(
                "def @main(%x: Tensor[(64, 4096), float32]) { Relu(%x) }", flop=0, size=2 * MIB, seconds=2e-4
            ),
            Limit.MOVED,
        ),
        (
            _kernel(
                "def @main(%x: Tensor[(64, 4096), float32]) { Relu(%x) }", flop=0, size=65_536, seconds=4e-6
            ),
            Limit.SHORT,
        ),
        (
            _kernel(
                "def @main(%x: Tensor[(64, 4096), float32]) { Relu(%x) }",
                flop=0,
                size=16_384,
                seconds=3e-7,
                threads=2,
            ),
            Limit.BARRIER,
        ),
    ],
    ids=["product", "few sums", "functions", "copy", "short", "barrier"],
)
def test_limits_are_read_from_loops_and_work(kernel: Kernel, limit: Limit) -> None:
    assert kernel.limit() is limit


def test_a_kernel_without_nodes_converts_a_layout() -> None:
    row = ProfileRow("native", "main", ProfiledKernel("copy", is_conversion=True), 1, 1e-5)
    kernel = Kernel(row, None, _machine(), streams=False)
    assert kernel.limit() is Limit.CONVERSION
    assert (kernel.bound, kernel.lost) == (0.0, 1e-5)


def test_the_bound_is_that_of_the_slower_roof() -> None:
    flop = 2 * 256 * 512 * 512
    program = "def @main(%x: Tensor[(256, 512), float32]) { MatMul(%x, meta[Constant][0]) }"
    kernel = _kernel(program, _matrix(512, 512), flop=flop, size=2 * MIB, seconds=2e-3)
    assert kernel.bound == pytest.approx(flop / (32 * HERTZ))
    # From the last-level cache, 20 bytes arrive in a cycle.
    slower = _kernel(program, _matrix(512, 512), flop=0, size=2 * MIB, seconds=2e-3)
    assert slower.bound == pytest.approx(2 * MIB / (20 * HERTZ))


@pytest.mark.parametrize("streams", [False, True])
def test_winograd_moves_its_tiles_and_its_larger_weights(*, streams: bool) -> None:
    x = Var("x", checked_type=TensorType((1, 64, 56, 56), DType.FLOAT32))
    weight = Constant(np.ones((64, 64, 3, 3), np.float32))
    convolution = typed(call("Conv", x, weight, pads=(1, 1, 1, 1), kernel_shape=(3, 3)))
    plans = plan_region(Function((x,), convolution), _machine().isa).kernels
    (plan,) = [item for item in plans if "winograd4" in item.name]
    # What is left of the products is nothing here, so that reads and writes bind.
    work = KernelWork(2 * 9 * 64 * 64 * 56 * 56, 2 * MIB, 1e-9)
    row = ProfileRow(
        "native", "main", ProfiledKernel(plan.name, (NODE,), NODE, work), 1, seconds=1e-3
    )  # fmt: skip
    machine, weights = _machine(), 4 * 36 * 64 * 64
    tiles = 2 * 4 * 36 * (64 + 64) * 14 * 14
    tensors = 2 * MIB - weights
    if streams:
        moved = machine.seconds_of_bytes(tensors) + machine.seconds_of_bytes(weights, is_from_memory=True)
    else:
        moved = machine.seconds_of_bytes(tensors + weights)
    assert Kernel(row, plan, machine, streams).bound == pytest.approx(
        moved + machine.seconds_of_scratch(tiles)
    )
    # Direct sums move no tiles: they are the bound of a machine that multiplies as fast as one likes.
    assert Kernel(row, plan, replace(machine, peak=1e18), streams).bound == pytest.approx(moved)


def test_a_model_near_its_bound_needs_no_reason() -> None:
    flop = 2 * 256 * 512 * 512
    program = "def @main(%x: Tensor[(256, 512), float32]) { MatMul(%x, meta[Constant][0]) }"
    least = flop / (32 * HERTZ)
    near = _kernel(program, _matrix(512, 512), flop=flop, size=MIB, seconds=1.1 * least)
    far = _kernel(program, _matrix(512, 512), flop=flop, size=MIB, seconds=2 * least)
    assert Bound("m", 1, 1.1 * least, (near,), 0.0).reason() == ""
    reason = Bound("m", 1, 2 * least, (far,), 0.0).reason()
    assert reason.startswith(
        f"Of {1e3 * least:.2f} ms beyond the bound, 100% in register tiles below the peak"
    )
    assert "n, 50% of its bound" in reason
