"""Programs as tasks, and tasks as programs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from intarsia.collage.device_placement.device_problem import Link
from intarsia.collage.device_placement.device_program import DeviceProgram, nbytes
from intarsia.collage.device_placement.operator_costs import operator_program, operator_seconds
from intarsia.ir import Call, DType, IRModule, TensorType, TupleType
from intarsia.ir.parser import parse_module
from intarsia.op.infer import infer_types
from intarsia.support.errors import UsageError
from intarsia.target import VirtualDevice
from intarsia.tune.evaluator import Evaluation
from intarsia.tune.trace import Trace

_DEVICES = tuple(
    VirtualDevice.parse(f'VirtualDevice(cpu:{number}, target="cpu -toolchain=reference -threads=1")')
    for number in range(2)
)
_LINKS = ((Link(), Link(1.0)), (Link(1.0), Link()))


def _typed(text: str) -> IRModule:
    return infer_types(parse_module(text))


def _program(text: str) -> DeviceProgram:
    found = DeviceProgram.of(_typed(text))
    assert found is not None
    return found


_BRANCHES = """
def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) {
  %0 = Relu(%x);
  %1 = Neg(%y);
  %2 = (%0, %1);
  %3 = %2.0;
  Add(%3, %1)
}
"""


def test_values_are_traced_through_tuples() -> None:
    program = _program(_BRANCHES)
    assert [str(each.op) for each in program.calls] == ["Relu", "Neg", "Add"]
    assert program.needs[2:4] == ((0,), (1,))
    assert program.needs[4] == (2, 3)


def test_values_are_traced_through_lets() -> None:
    program = _program("""
    def @main(%x: Tensor[(2,), float32]) {
      let %v: Tensor[(2,), float32] = Relu(%x);
      Neg(%v)
    }
    """)
    assert program.needs == ((), (0,), (1,))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('def @main(%x: Tensor[("n", 3), float32]) { Relu(%x) }', id="unknown shape"),
        pytest.param(
            "def @main(%x: Tensor[(3,), float32]) { @f(%x) } def @f(%x: Tensor[(3,), float32]) { Relu(%x) }",
            id="function",
        ),
    ],
)
def test_what_cannot_be_measured_alone_is_no_task(text: str) -> None:
    assert DeviceProgram.of(_typed(text)) is None


def test_what_is_annotated_stays() -> None:
    program = _program("""
    def @main(%x: Tensor[(2,), float32]) {
      %0 = Relu(%x) @device(cpu:1);
      Neg(%0)
    }
    """)
    problem = program.problem(_DEVICES, dict.fromkeys(program.calls, (1.0, 1.0)), _LINKS)
    assert problem.open_devices == ((0, 1), (1,), (0, 1))
    with pytest.raises(UsageError, match=r"Relu \(VirtualDevice\(cpu:1\)\) can run on none"):
        program.problem(_DEVICES[:1], dict.fromkeys(program.calls, (1.0,)), ((Link(),),))


def test_a_placement_is_written_on_inputs_and_operators() -> None:
    program = _program(_BRANCHES)
    placed = program.annotated((0, 1, 0, 1, 1), _DEVICES)["main"]
    assert [param.virtual_device for param in placed.params] == [_DEVICES[0], _DEVICES[1]]
    assert isinstance(placed.body, Call)
    assert placed.body.virtual_device == _DEVICES[1]
    with pytest.raises(UsageError, match="a placement of 2 values on 2 devices does not fit"):
        program.annotated((0, 1), _DEVICES)


def test_an_operator_is_a_program_of_its_own() -> None:
    program = _program("""
    def @main(%x: Tensor[(2, 2), float32]) {
      %0 = Relu(%x);
      MatMul(%0, %0) @device(cpu:1)
    }
    """)
    alone = operator_program(program.calls[1])["main"]
    assert len(alone.params) == 1
    assert alone.body.virtual_device.is_fully_unconstrained


class _Judge:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def evaluate(self, candidates: Sequence[Trace]) -> list[Evaluation]:
        self.asked += [str(each.out_mod) for each in candidates]
        return [Evaluation(float(len(self.asked))) for _ in candidates]


def test_equal_operators_on_equal_targets_are_evaluated_once() -> None:
    program = _program("""
    def @main(%x: Tensor[(2, 2), float32]) {
      %0 = Relu(%x);
      %1 = Relu(%0);
      %2 = Neg(%1);
      Add(%2, %0)
    }
    """)
    judge = _Judge()
    seconds = operator_seconds(program, _DEVICES, (), judge)
    assert len(judge.asked) == 3
    assert all('Compiler="reference"' in text for text in judge.asked)
    assert [seconds[call] for call in program.calls] == [(1.0, 1.0), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]


_PLAIN = VirtualDevice.parse('VirtualDevice(cpu:0, target="cpu -threads=1")')


def test_a_device_without_toolchain_has_the_best_of_those_given() -> None:
    program = _program("def @main(%x: Tensor[(2, 2), float32]) { Relu(%x) }")
    judge = _Judge()
    seconds = operator_seconds(program, (_PLAIN,), ("native", "reference"), judge)
    assert len(judge.asked) == 2
    assert 'target="cpu -toolchain=native -threads=1"' in judge.asked[0]
    assert list(seconds.values()) == [(1.0,)]


def test_a_device_for_which_nobody_compiles_is_refused() -> None:
    with pytest.raises(UsageError, match="no toolchain compiles for"):
        operator_seconds(_program(_BRANCHES), (_PLAIN,), (), _Judge())


def test_sizes_are_in_bytes() -> None:
    pair = TupleType((TensorType((2, 3), DType.FLOAT32), TensorType((), DType.INT64)))
    assert nbytes(pair) == 32
