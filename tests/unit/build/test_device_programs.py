"""Planned programs, written as text, on several devices."""

import re
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.numpy_toolchain import NumpyToolchain

import intarsia as ia
from intarsia.build import build
from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.passes.infer_type import InferType
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.runtime.plan import Copy, Invoke, RunKernel, TensorInfo
from intarsia.runtime.plan_check import plan_complaint
from intarsia.runtime.self_test import SelfTest
from intarsia.support.errors import InvalidModelError, UnsupportedModelError

pytestmark = pytest.mark.usefixtures("numpy_toolchain")

X = np.arange(4, dtype=np.float32) - 1
PAIRS = (("cpu:0", "cpu:1"), ("mock:0", "mock:1"), ("cpu:0", "mock:0"), ("mock:0", "cpu:0"))
T = "Tensor[(4), float32]"


def program(text: str, devices: Sequence[str] = PAIRS[1], constants: Sequence[np.ndarray] = ()) -> IRModule:
    """The program of a text in which `@0` and `@1` stand for devices, and `T` for the type of vectors."""
    for number, device in enumerate(devices):
        text = text.replace(f"@{number}", f"@device({device})")
    return InferType()(parse_module(re.sub(r"\bT\b", T, text), constants))


def built(mod: IRModule) -> Executable:
    exe = build(mod)
    assert plan_complaint(exe.plan, len(exe.kernels), 99) == ""
    return exe


def copies(exe: Executable) -> int:
    return sum(isinstance(step, Copy) for block in exe.plan.blocks.values() for step in block.steps)


BRANCHES = """
def @main(%x: T @0) -> T {
  %0 = Add(%x, %x) @0;
  %1 = intarsia::device_copy(%x) @1;
  %2 = Mul(%1, %1) @1;
  %3 = Neg(%2) @1;
  %4 = intarsia::device_copy(%3) @0;
  Sub(%0, %4) @0
}
"""


@pytest.mark.parametrize("devices", PAIRS, ids="+".join)
def test_two_branches(devices: tuple[str, str], tmp_path: Path) -> None:
    exe = built(program(BRANCHES, devices))
    expected = 2 * X + X * X
    assert exe.plan.devices == tuple(sorted(devices))
    assert copies(exe) == 2
    np.testing.assert_array_equal(exe(X), expected)
    exe.save(tmp_path / "m.intarsia", self_test=SelfTest((X,), (expected,)))
    exe.close()
    with ia.load(tmp_path / "m.intarsia") as loaded:
        assert loaded.plan == exe.plan
        assert loaded.self_test() == 0
        np.testing.assert_array_equal(loaded(X), expected)


def test_kernels_of_one_group_of_cores_have_its_threads() -> None:
    text = BRANCHES.replace("@1", '@device(cpu:1, target="cpu -toolchain=numpy -threads=1")')
    with built(program(text, ["cpu:0"])) as exe:
        targets = {kernel.source.target for kernel in exe.kernels}
    assert "cpu -toolchain=numpy -threads=1" in targets
    assert all("-threads=" in target for target in targets)
    assert {target.split()[1] for target in targets} == {"-toolchain=numpy", "-toolchain=reference"}


def test_one_device_of_the_cpu_is_none() -> None:
    for device in ("cpu:0", "cpu:1"):
        exe = built(program(BRANCHES, [device, device]))
        assert exe.plan.devices == ()
        assert copies(exe) == 0
        np.testing.assert_array_equal(exe(X), 2 * X + X * X)


def test_one_device_of_another_kind_is_one() -> None:
    text = "def @main(%x: T @1) -> T { %0 = Add(%x, %x) @1; Neg(%0) @1 }"
    with built(program(text)) as exe:
        assert exe.plan.devices == ("mock:1",)
        assert len(exe.kernels) == 1
        np.testing.assert_array_equal(exe(X), -2 * X)


def test_a_constant_has_a_slot_on_each_device_and_is_never_copied() -> None:
    text = """
    def @main(%x: T @0) -> (T, T, T) {
      %0 = Identity(%x) @0;
      %1 = intarsia::device_copy(meta[Constant][0] @0) @1;
      (%0, %1, meta[Constant][0] @0)
    }
    """
    constant = np.full(4, 5, np.float32)
    with built(program(text, constants=[constant])) as exe:
        assert copies(exe) == 0
        places = {exe.plan.blocks["main"].slot_devices[slot] for slot, _ in exe.plan.blocks["main"].constants}
        assert places == {0, 1}
        for found, expected in zip(exe(X), (X, constant, constant), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_a_constant_that_a_function_returns_is_where_it_is_planned() -> None:
    text = """
    def @f(%p: T @0) -> T { meta[Constant][0] @1 }
    def @main(%x: T @0) -> T { %0 = @f(%x) @1; Neg(%0) @1 }
    """
    with built(program(text, constants=[X + 1])) as exe:
        np.testing.assert_array_equal(exe(X), -X - 1)


def test_tuples_are_copied_field_by_field_and_only_where_they_must() -> None:
    text = """
    def @main(%x: T @0, %y: T @1) -> (T, T) {
      %0 = Neg(%x) @0;
      %1 = (%0, %y);
      intarsia::device_copy(%1) @1
    }
    """
    with built(program(text)) as exe:
        assert copies(exe) == 1
        for found, expected in zip(exe(X, X), (-X, X), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_marked_functions_run_on_the_device_of_their_call() -> None:
    text = """
    def @f(%p: T) -> T attributes {Compiler="numpy"} { Add(%p, %p) }
    def @main(%x: T @0) -> T {
      %0 = @f(%x) @0;
      %1 = intarsia::device_copy(%x) @1;
      %2 = @f(%1) @1;
      %3 = intarsia::device_copy(%2) @0;
      Sub(%0, Neg(%3) @0) @0
    }
    """
    with built(program(text)) as exe:
        steps = exe.plan.blocks["main"].steps
        ran = {(step.kernel, step.device) for step in steps if isinstance(step, RunKernel)}
        assert sum(exe.kernels[kernel].source.toolchain == "numpy" for kernel, _ in ran) == 2
        np.testing.assert_array_equal(exe(X), 4 * X)


def test_functions_whose_parameters_are_on_several_devices() -> None:
    text = """
    def @f(%p: T @0, %q: T @1) -> T { %0 = intarsia::device_copy(%p) @1; Sub(%0, %q) @1 }
    def @main(%x: T @0, %y: T @1) -> T { %0 = @f(%x, %y) @1; Neg(%0) @1 }
    """
    with built(program(text)) as exe:
        assert any(isinstance(step, Invoke) for step in exe.plan.blocks["main"].steps)
        np.testing.assert_array_equal(exe(X, 3 * X), 2 * X)


@pytest.mark.parametrize("devices", PAIRS, ids="+".join)
def test_branches_of_an_if_are_on_devices(devices: tuple[str, str]) -> None:
    text = """
    def @main(%x: T @0, %c: Tensor[(), bool] @0) -> T {
      %0 = if (%c) {
        %1 = intarsia::device_copy(%x) @1;
        Neg(%1) @1
      } else {
        %2 = Add(%x, %x) @0;
        intarsia::device_copy(%2) @1
      } @1;
      Mul(%0, %0) @1
    }
    """
    with built(program(text, devices)) as exe:
        np.testing.assert_array_equal(exe(X, np.array(True)), X * X)
        np.testing.assert_array_equal(exe(X, np.array(False)), 4 * X * X)


def test_shapes_are_read_where_the_value_is() -> None:
    text = """
    def @main(%x: Tensor[(n, 3), float32] @1, %y: Tensor[(2), int64] @0) -> Tensor[(2), int64] {
      %0 = Shape(%x) @0;
      Add(%0, %y) @0
    }
    """
    with built(program(text)) as exe:
        copied = [step.source for step in exe.plan.blocks["main"].steps if isinstance(step, Copy)]
        assert [exe.plan.slot_types[slot] for slot in copied] == [TensorInfo("", "int64", (2,))]
        found = exe(np.zeros((5, 3), np.float32), np.array([1, 2]))
    np.testing.assert_array_equal(found, [6, 5])


def test_both_branches_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first kernel of each device waits for the other one: one after the other they never would."""
    monkeypatch.setitem(TOOLCHAINS._values, "reference", NumpyToolchain)
    with built(program(BRANCHES, PAIRS[0])) as exe:
        barrier = threading.Barrier(2, timeout=60)
        first = {
            step.device: step.kernel
            for step in reversed(exe.plan.blocks["main"].steps)
            if isinstance(step, RunKernel)
        }
        for number in first.values():
            plain = exe._named[number].run_kernel

            def meet(inputs, outputs, plain=plain):  # type: ignore[no-untyped-def]  # as the kernel's
                barrier.wait()
                return plain(inputs, outputs)

            exe._named[number].run_kernel = meet
        np.testing.assert_array_equal(exe(X), 2 * X + X * X)
        assert exe.trace(X).overlaps


def test_a_missing_copy_is_found_when_it_is_built() -> None:
    text = "def @main(%x: T @0) -> T { %0 = Neg(%x) @0; Neg(%0) @1 }"
    with pytest.raises(InvalidModelError) as caught:
        build(program(text))
    assert str(caught.value) == (
        "in @main, a Call is on mock:1 and reads a value that is on mock:0\n"
        "help: a device_copy is missing; run PlanDevices before build"
    )


@pytest.mark.parametrize(
    "body",
    ["%0 = Neg(%x) @0; %1 = Neg(%0); Neg(%1) @1", "%0 = intarsia::on_device(%x) @0; Neg(%0) @1"],
    ids=["open", "on_device"],
)
def test_a_program_that_is_not_planned(body: str) -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        build(program(f"def @main(%x: T @0) -> T {{ {body} }}"))
    assert str(caught.value) == (
        "in @main, a Call has no planned device, but the program names mock:0, mock:1\n"
        "help: run PlanDevices before build"
    )


@pytest.mark.parametrize("devices", [PAIRS[0], PAIRS[2]], ids="+".join)
@pytest.mark.parametrize("toolchain", ["native", "onnxruntime", "openvino"])
def test_engines_work_in_the_threads_of_devices(
    toolchain: str, devices: tuple[str, str], tmp_path: Path
) -> None:
    exe = build(program(BRANCHES, devices), ia.Target.for_toolchain(toolchain))
    assert {kernel.source.toolchain for kernel in exe.kernels} == {toolchain}
    exe.save(tmp_path / "m.intarsia")
    with exe, ia.load(tmp_path / "m.intarsia") as loaded:
        for shift in range(3):
            x = X + shift
            np.testing.assert_allclose(exe(x), 2 * x + x * x, rtol=1e-6)
            np.testing.assert_allclose(loaded(x), 2 * x + x * x, rtol=1e-6)


@pytest.mark.parametrize("devices", [("mock:0", "mock:1"), ("cpu:0", "cpu:0")], ids="+".join)
def test_a_memory_scope_is_refused(devices: tuple[str, str]) -> None:
    scoped = program(f'def @main(%x: T @0) -> T {{ Neg(%x) @device({devices[0]}, scope="fast") }}', devices)
    message = f"is in memory scope 'fast', but {devices[0]} has only the memory \"global\""
    with pytest.raises(UnsupportedModelError, match=message):
        build(scoped)


def test_the_memory_of_a_device_has_a_name() -> None:
    with built(program('def @main(%x: T @0) -> T { Neg(%x) @device(mock:0, scope="global") }')) as exe:
        np.testing.assert_array_equal(exe(X), -X)
