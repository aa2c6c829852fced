"""A small file cannot make a build exhaust the machine: it is compiled, or refused."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from tests.onnx_models import model_of

import intarsia as ia
from intarsia.support.errors import CompileError
from intarsia.toolchain.native import arena as native_arena


def resize(kind: str, *sizes: int, shape: str = "float[1,1,2,2]") -> Any:
    graph = f'g ({shape} x) => (y) {{ y = Resize <mode = "{kind}"> (x, , , s) }}'
    return model_of(graph, opset=18, ir_version=10, s=np.array(sizes, np.int64))


def pool(kernel: int, *pads: int) -> Any:
    attributes = f"kernel_shape = [{kernel}], pads = {list(pads)}"
    return model_of(f"g (float[1,1,268435456] x) => (y) {{ y = AveragePool <{attributes}> (x) }}")


LARGEST = 2**31 - 1
FILLED = "g (float[2] x) => (y) { f = ConstantOfShape(s)  m = ReduceMax <keepdims = 0> (f)  y = Add(x, m) }"
NATIVE: dict[str, tuple[Any, str]] = {
    **{
        f"{kind}, one axis": (
            resize(kind, 1, 1, 1, 10**9),
            "nearest elements along an axis that gets 1000000000 elements" if kind == "nearest" else "built",
        )
        for kind in ("nearest", "linear", "cubic")
    },
    "linear, from one row": (resize("linear", 1, 1, 1, 10**9, shape="float[1,1,1,2]"), "built"),
    "nearest, many rows": (resize("nearest", 1, 1, 2**20, 3), "built"),
    "nearest, a picture": (resize("nearest", 1, 1, 16384, 16384), "built"),
    "average": (pool(3, 1, 1), "built"),
    "average, no padding": (pool(3, 0, 0), "built"),
    "average, large window": (pool(2**27, 5, 5), "built"),
    "filled": (model_of(FILLED, s=np.array([LARGEST])), "values between its kernels take 8,192 MiB"),
}
OPENVINO = {
    "linear, one row": (resize("linear", 1, 1, 1, 10**9), "it crashes on a Resize"),
    "linear, a picture": (resize("linear", 1, 1, 2**14, 2**14), "it crashes on a Resize"),
    "linear, a volume": (
        resize("linear", 1, 1, 2**9, 2**9, 2**9, shape="float[1,1,2,2,2]"),
        "it crashes on a Resize",
    ),
    "cubic": (resize("cubic", 1, 1, 2**15, 2**15), "it crashes on a Resize"),
    "nearest": (resize("nearest", 1, 1, 2**16, 2**15), "openvino cannot compile this: Failed to allocate"),
}
CASES = {
    f"{toolchain}: {name}": case
    for toolchain, cases in (("native", NATIVE), ("openvino", OPENVINO))
    for name, case in cases.items()
}
"""Models of a few hundred bytes, and what a build in 6 GiB ends with."""

BUILD_ALL = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))  # mapped libraries count as well
resource.setrlimit(resource.RLIMIT_CPU, (120, 120))  # a runaway build ends
import intarsia as ia
for path in sorted(Path(sys.argv[1]).iterdir()):
    toolchain, _, _ = path.stem.partition(":")
    try:
        ia.build(ia.from_onnx(path), f"cpu -toolchain={toolchain} -threads=1").close()
        outcome = "built"
    except BaseException as error:
        outcome = f"{type(error).__name__} {getattr(error, 'problem', error)}"
    print(path.stem, outcome, sep="\\t", flush=True)
# Of this program alone: ru_maxrss begins with the memory of the process that started it.
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the build of each case ends with, in one process with little memory."""
    folder = tmp_path_factory.mktemp("models")
    for name, (model, _) in CASES.items():
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
        assert (folder / f"{name}.onnx").stat().st_size < 300
    command = [sys.executable, "-c", BUILD_ALL, str(folder)]
    *lines, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert int(peak) < 1 << 20, f"{peak} KiB"
    return dict(line.split("\t") for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_what_a_build_ends_with(name: str, outcomes: dict[str, str]) -> None:
    expected = CASES[name][1]
    if expected == "built":
        assert outcomes[name] == expected
    else:
        assert outcomes[name].startswith("CompileError ")
        assert expected in outcomes[name]


def test_an_arena_beyond_the_machine_is_refused_before_kernels_are_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "g (float[256] x) => (y) { a = Exp(x)  s = ReduceSum(a)  b = Div(a, s)  y = CumSum(b, k) }"
    model = model_of(text, k=np.array(0))
    ia.build(ia.from_onnx(model), "cpu -toolchain=native -threads=1").close()
    monkeypatch.setattr(native_arena, "machine_memory", lambda: 1023)
    monkeypatch.setattr("intarsia.toolchain.native.build.compile_dags", None)
    with pytest.raises(CompileError, match="values between its kernels take 0 MiB, which this machine") as e:
        ia.build(ia.from_onnx(model), "cpu -toolchain=native -threads=1")
    assert e.value.help == "close other programs, or fix smaller input shapes"
