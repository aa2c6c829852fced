"""Convolutions in groups, of channels that lie anywhere, compute what ONNX's reference does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from tests.emitted_kernels import x86_sets
from tests.scheduled_kernels import computed, loops_of, normal, reference, state_of

from intarsia.ir import DType
from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import For, ForKind
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.emission.emit import emit_llvm
from intarsia.native.graph.channel_order import ChannelOrder
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule.blocked import blocked_state
from intarsia.native.te.operators.blocked_convolution import pack_weight_of_plain
from intarsia.native.te.operators.blocked_layout import blocked_array, blocked_bias, plain_array
from intarsia.native.te.operators.channel_tables import first_pixels
from intarsia.native.te.operators.grouped_convolution import grouped_convolution
from intarsia.native.te.operators.windows import Window


@dataclass(frozen=True)
class Case:
    """A convolution in groups without padding."""

    channels: int
    made: int
    groups: int
    size: tuple[int, int] = (6, 9)
    taps: int = 1
    stride: int = 1
    batch: int = 1

    @property
    def windows(self) -> tuple[Window, ...]:
        """One for each dimension."""
        return tuple(
            Window(extent, (extent - self.taps) // self.stride + 1, self.taps, self.stride, 1, 0, 0)
            for extent in self.size
        )

    def order(self, lanes: int) -> ChannelOrder:
        """Channels of the input are dealt out, and groups begin with blocks."""
        grouped = ChannelOrder.of_groups(self.channels, self.groups, lanes)
        dealt = np.arange(self.channels).reshape(self.groups, -1).T.ravel()
        return grouped.permuted(tuple(map(int, dealt)))


CASES = {
    "one group": Case(24, 40, 1),
    "shuffled": Case(136, 136, 4),
    "few channels": Case(6, 20, 2, (5, 28)),
    "taps and strides": Case(40, 72, 2, (9, 8), 3, 2),
    "batch": Case(34, 34, 2, (3, 4), batch=3),
}


def _tensors(case: Case, isa: Isa) -> tuple[ComputeDAG, ChannelOrder, ChannelOrder]:
    lanes, pixels = isa.vector_bytes // 4, case.size[0] * case.size[1]
    given, made = case.order(lanes), ChannelOrder.of_groups(case.made, case.groups, lanes)
    own = case.channels // case.groups
    x = te.placeholder((case.batch, len(given.places) * pixels), name="x")
    table = te.placeholder((case.groups, own), DType.INT32, name="t")
    weight = te.placeholder((made.blocks, own, case.taps, case.taps, lanes), name="w")
    bias = te.placeholder((made.blocks, lanes), name="b")
    y = blocked_bias(grouped_convolution(x, table, weight, case.windows, "conv"), bias, "y")
    return ComputeDAG((x, table, weight, bias, y)), given, made


@pytest.mark.parametrize("isa", x86_sets().values(), ids=x86_sets())
@pytest.mark.parametrize("name", CASES)
def test_convolution_in_groups(name: str, isa: Isa, threads: int) -> None:
    case, lanes = CASES[name], isa.vector_bytes // 4
    dag, given, made = _tensors(case, isa)
    data = normal(case.batch, case.channels, *case.size)
    weight = normal(case.made, case.channels // case.groups, case.taps, case.taps, seed=1)
    bias = normal(case.made, seed=2)
    first = first_pixels(given.place_of, case.size[0] * case.size[1], lanes).reshape(case.groups, -1)
    arrays = [
        blocked_array(given.arranged(data, 1), lanes).reshape(case.batch, -1),
        first,
        pack_weight_of_plain(made.arranged(weight, 0), lanes),
        blocked_array(made.arranged(bias, 0), lanes, axis=0),
    ]
    expected = reference("Conv", [data, weight, bias], group=case.groups, strides=[case.stride] * 2)
    named = dict(zip(dag.placeholders, arrays, strict=True))
    found = plain_array(computed(dag, named, blocked_state, isa, threads), len(made.places))
    np.testing.assert_allclose(found[:, list(made.place_of)], expected, rtol=1e-4, atol=1e-4)
    rest = [place for place, channel in enumerate(made.places) if channel < 0]
    assert not found[:, rest].any()


def test_threads_get_groups_or_rows() -> None:
    isa = Isa.host()
    for case in (Case(272, 272, 4, (14, 14)), Case(112, 112, 4, (28, 28))):
        dag, *_ = _tensors(case, isa)
        state_of(dag, blocked_state, isa, 2)
        loops = (visit.statement for visit in walk(loops_of(dag, blocked_state, isa, 2).body))
        parallel = {each.extent for each in loops if isinstance(each, For) and each.kind is ForKind.PARALLEL}
        assert parallel == ({4} if case.channels == 272 else {28})


def test_looking_up_channels_leaves_vectors_whole() -> None:
    isa = Isa.host()
    dag, *_ = _tensors(CASES["shuffled"], isa)
    text = emit_llvm(loops_of(dag, blocked_state, isa), "kernel", isa).text
    lanes = isa.vector_bytes // 4
    assert f"fmul contract <{lanes} x float>" in text
    assert f"<{lanes // 2} x float>" not in text
