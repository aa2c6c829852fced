"""A toolchain of a package that is installed beside Intarsia."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.end_to_end.command_line import environment, process
from tests.end_to_end.installed_packages import found_in, install_example

pytestmark = pytest.mark.processes

PROGRAM = """
import sys
import numpy as np

import intarsia as ia
from intarsia.ir.parser import parse_module
from intarsia.passes import InferType, partition_for, partition_whole
from intarsia.support.errors import CompileError, UsageError
from intarsia.target import Target

def typed(text):
    return InferType()(parse_module(text))

def drawn(*shapes, dtype=np.float32):
    generator = np.random.default_rng(3)
    return [generator.standard_normal(shape).astype(dtype) for shape in shapes]
"""

ALL_OPERATORS = """
mod = typed('''
def @main(%x: Tensor[(3, 4), {dtype}], %w: Tensor[(4, 5), {dtype}], %b: Tensor[(5,), {dtype}]) {{
  %0 = MatMul(%x, %w); %1 = Add(%0, %b); %2 = Sigmoid(%1); %3 = Mul(%2, %1); %4 = Relu(%3);
  %5 = Sub(Tanh(%4), Neg(%b)); %6 = Sqrt(Abs(%5)); %7 = Div(Exp(%6), %4); %8 = Log(Abs(%5));
  (%7, %8, %2, %4, Identity(%x), %b, %7)
}}''')
args = drawn((3, 4), (4, 5), (5,), dtype=np.{dtype})
expected = ia.build(partition_whole(mod, Target("cpu -toolchain=reference")))(*args)
for options in ("", " -reuse_buffers=false", " -optimize=0"):
    exe = ia.build(partition_whole(mod, Target("cpu -toolchain=numpy" + options)))
    assert {{kernel.source.toolchain for kernel in exe.kernels}} == {{"numpy"}}
    for _ in range(2):
        for result, right in zip(exe(*args), expected, strict=True):
            assert result.dtype == right.dtype
            np.testing.assert_allclose(result, right, rtol={rtol})
    results = exe(*args)
    assert not any(np.shares_memory(result, arg) for result in results for arg in args)
print("right")
"""

PARTITION = """
from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var
from intarsia.op import call
mod = typed("def @main(%x: Tensor[(3, 4), float32], %w: Tensor[(4, 4), float32])"
            "{ Add(Softmax(MatMul(%x, %w)), Exp(%x)) }")
exe = ia.build(partition_for(mod, "numpy", "onnxruntime"))
args = drawn((3, 4), (4, 4))
expected = ia.build(partition_whole(mod, Target("cpu -toolchain=reference")))(*args)
np.testing.assert_allclose(exe(*args), expected, rtol=1e-5)
weight = np.random.default_rng(5).standard_normal((300, 300)).astype(np.float32)
x = Var("x", checked_type=TensorType((2, 300), DType.FLOAT32))
product = InferType()(IRModule.from_expr(Function((x,), call("Tanh", call("MatMul", x, Constant(weight))))))
with_weights = ia.build(partition_whole(product, Target("cpu -toolchain=numpy")))
with_weights.save("weights.intarsia")
(given,) = drawn((2, 300))
for run in (with_weights, ia.load("weights.intarsia")):
    np.testing.assert_allclose(run(given), np.tanh(given @ weight), rtol=1e-5)
exe.save("both.intarsia")
np.testing.assert_allclose(ia.load("both.intarsia")(*args), expected, rtol=1e-5)
print(sorted(kernel.source.toolchain for kernel in exe.kernels))
"""

OPTION = """
import tracemalloc
from intarsia.target import toolchain_options
assert "numpy_toolchain" not in sys.modules
Target("cpu -toolchain=numpy -reuse_buffers=false")
print(*sorted(name for name in sys.modules if name.startswith("numpy_toolchain")))
print(*(option.name for option in toolchain_options("numpy")))
for text in ("cpu -toolchain=reference -reuse_buffers=false", "cpu -toolchain=numpy -reuse_buffers=1",
             "cpu -toolchain=numpy -reuse_bufers=false"):
    try:
        Target(text)
    except UsageError as error:
        print(str(error).splitlines()[0], str(error).splitlines()[-1], sep=" / ")

mod = typed("def @main(%x: Tensor[(1000, 1000), float32]) { Exp(Neg(Abs(Neg(Tanh(%x))))) }")
(x,) = drawn((1000, 1000))
peaks = {}
for value in ("true", "false"):
    exe = ia.build(partition_whole(mod, Target(f"cpu -toolchain=numpy -reuse_buffers={value}")))
    out = exe(x)
    tracemalloc.start()
    out = exe(x)
    peaks[value] = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
print(round((peaks["false"] - peaks["true"]) / x.nbytes, 2))
"""

REFUSED = """
for dtype, operator in (("float32", "Softmax"), ("float16", "Exp")):
    mod = typed("def @main(%x: Tensor[(3,), " + dtype + "]) { " + operator + "(%x) }")
    assert "numpy" not in str(partition_for(mod, "numpy"))
    try:
        ia.build(partition_whole(mod, Target("cpu -toolchain=numpy")))
    except CompileError as error:
        print(str(error).splitlines()[0])
"""


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_example("toolchain_package", tmp_path_factory.mktemp("example"))


def printed(example: Path, folder: Path, code: str) -> str:
    """Run code in a process that finds the package."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + code],
        cwd=folder,
        env=environment(found_in(example)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_toolchain_is_listed(example: Path, tmp_path: Path) -> None:
    code = "print([status.is_usable for status in installed_toolchains() if status.name == 'numpy'])"
    imports = "from intarsia.toolchain import installed_toolchains\n"
    assert printed(example, tmp_path, imports + code) == "[True]\n"
    assert "numpy" in process("doctor", cwd=tmp_path, env=found_in(example)).out
    assert "numpy " not in process("doctor", cwd=tmp_path).out


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", "2e-5"), ("float64", "1e-12")])
def test_results_are_those_of_the_reference(example: Path, tmp_path: Path, dtype: str, rtol: str) -> None:
    assert printed(example, tmp_path, ALL_OPERATORS.format(dtype=dtype, rtol=rtol)) == "right\n"


def test_it_shares_a_program_with_another_toolchain(example: Path, tmp_path: Path) -> None:
    assert printed(example, tmp_path, PARTITION) == "['numpy', 'numpy', 'onnxruntime']\n"


def test_its_option_is_read_without_it_and_has_its_effect(example: Path, tmp_path: Path) -> None:
    assert printed(example, tmp_path, OPTION).splitlines() == [
        "numpy_toolchain numpy_toolchain.options",
        "reuse_buffers",
        "toolchain reference does not understand -reuse_buffers; expected numpy / "
        "help: whether elementwise operators write into operands that nothing reads afterwards",
        "target option -reuse_buffers is '1'; expected true or false / "
        "help: whether elementwise operators write into operands that nothing reads afterwards",
        "unknown target option 'reuse_bufers' / help: did you mean reuse_buffers?",
        "1.0",  # arrays of the size of x that are spared at the peak
    ]


def test_what_it_lacks_is_refused(example: Path, tmp_path: Path) -> None:
    assert printed(example, tmp_path, REFUSED).splitlines() == [
        "numpy cannot compile this: it lacks operator 'Softmax'",
        "numpy cannot compile this: 'x' is float16",
    ]


def test_the_command_line_reads_its_option(example: Path, tmp_path: Path) -> None:
    unknown = process(
        "compare", "zoo:mnist@cpu -toolchain=numpy -reuse_bufers=true", cwd=tmp_path, env=found_in(example)
    )
    assert unknown.code == 2
    assert "unknown target option 'reuse_bufers'" in unknown.err
    assert "did you mean reuse_buffers?" in unknown.err
