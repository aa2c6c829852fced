"""A child that is forked while threads of its parent use toolchains can use them too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.forked_children import forked, threads_that_call
from tests.onnx_models import model_of
from tests.partitioned_programs import SIZE, unpartitioned

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.passes import partition_for, partition_whole
from intarsia.runtime.artifact_load import load
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.toolchain import usable_toolchains

pytestmark = pytest.mark.processes

CHILDREN = 6
TOOLCHAINS = sorted(toolchain.name for toolchain in usable_toolchains())


def executable_of(toolchain: str, threads: int) -> Executable:
    target = Target.for_toolchain(toolchain)
    return build(partition_whole(unpartitioned(), target.with_options(threads=threads)))


def random_input() -> Array:
    return np.random.default_rng(1).standard_normal((SIZE, SIZE)).astype(np.float32)


def is_close(result: Array, expected: Array) -> bool:
    return np.allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_forked_children_get_the_result_while_threads_call(toolchain: str, threads: int) -> None:
    given, executable = random_input(), executable_of(toolchain, threads)
    expected = executable(given)
    with threads_that_call(lambda: executable(given)):
        statuses = [forked(lambda: is_close(executable(given), expected)) for _ in range(CHILDREN)]
    assert statuses == [0] * CHILDREN
    assert is_close(executable(given), expected)


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_forked_children_build_while_threads_call(toolchain: str) -> None:
    given, executable = random_input(), executable_of(toolchain, 1)
    expected = executable(given)
    with threads_that_call(lambda: executable(given)):
        statuses = [forked(lambda: is_close(executable_of(toolchain, 1)(given), expected)) for _ in range(2)]
    assert statuses == [0, 0]


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_forked_children_save_and_load_while_threads_call(toolchain: str, tmp_path: Path) -> None:
    given, executable, of_parent = random_input(), executable_of(toolchain, 1), tmp_path / "parent.intarsia"
    expected = executable(given)
    executable.save(of_parent)

    def loads_both() -> bool:
        of_child = tmp_path / "child.intarsia"
        with executable_of(toolchain, 1) as built:
            built.save(of_child)
        return all(is_close(load(place)(given), expected) for place in (of_parent, of_child))

    with threads_that_call(lambda: executable(given)):
        status = forked(loads_both)
    assert status == 0


def outcome_of_build(target: Target) -> str:
    """Return "built", or the message of the error."""
    try:
        build(partition_whole(unpartitioned(), target)).close()
    except CompileError as error:
        return str(error)
    return "built"


@pytest.mark.skipif("openvino" not in TOOLCHAINS, reason="openvino is not installed")
@pytest.mark.parametrize("option", ["core_type=efficient", "core_type=any", "inference_precision=float16"])
def test_options_are_refused_in_a_child_as_in_its_parent(option: str) -> None:
    target = Target(f"cpu -toolchain=openvino -threads=1 -{option}")
    expected = outcome_of_build(target)
    assert forked(lambda: outcome_of_build(target) == expected) == 0


MIXED = """g (float[64,64] x) => (float[64,64] y) {
  a = MatMul (x, x) b = Softmax (a) c = NonZero (b) d = Cast <to = 1> (c)
  e = ReduceSum <keepdims = 0> (d) y = Add (b, e)
}"""
BRANCHES = """g (float[64,64] x) => (float[64,64] y) {
  zero = Constant <value = float {0.0}> () sum = ReduceSum <keepdims = 0> (x) c = Greater (sum, zero)
  y = If (c) <
    then_branch = t () => (float[64,64] a) { q = MatMul (x, x) a = Softmax (q) },
    else_branch = e () => (float[64,64] b) { r = MatMul (x, x) b = Relu (r) }
  >
}"""
LOOP = """g (float[64,64] x) => (float[64,64] y) {
  n = Constant <value = int64 {20}> () t = Constant <value = bool {1}> ()
  y = Loop (n, t, x) <body = b (int64 i, bool c, float[64,64] v) => (bool more, float[64,64] w) {
    more = Identity (c) q = MatMul (v, v) w = Softmax (q)
  }>
}"""


@pytest.mark.skipif(not {"native", "onnxruntime"} <= set(TOOLCHAINS), reason="two toolchains are needed")
@pytest.mark.parametrize("text", [MIXED, BRANCHES, LOOP], ids=["mixed", "branches", "loop"])
def test_forked_children_call_programs_of_several_parts_while_threads_call(text: str) -> None:
    targets = [str(Target.for_toolchain(name, threads=2)) for name in ("native", "onnxruntime")]
    given, executable = random_input(), build(partition_for(from_onnx(model_of(text)), *targets))
    expected = executable(given)
    with threads_that_call(lambda: executable(given)):
        statuses = [forked(lambda: is_close(executable(given), expected)) for _ in range(CHILDREN)]
    assert statuses == [0] * CHILDREN
