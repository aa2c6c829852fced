"""Products that a library computes inside a region; a library of NumPy stands in where none is installed."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pytest

import intarsia as ia
from intarsia.build import build
from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var
from intarsia.native.object_code.allowed_symbols import OPENBLAS
from intarsia.op import call
from intarsia.passes import PartitionWhole
from intarsia.runtime.availability import Unavailable
from intarsia.runtime.executable import Executable
from intarsia.support.errors import ArtifactError, CompileError
from intarsia.toolchain.native import libraries
from intarsia.toolchain.native.libraries import LoadedLibrary, library_symbols

pytestmark = pytest.mark.quick_tests(9, also=["test_a_missing_library_is_a_clear_error"])

Floats = npt.NDArray[np.float32]

_SGEMM = ctypes.CFUNCTYPE(
    None,
    *(ctypes.c_int,) * 6,
    ctypes.c_float,
    *(ctypes.c_void_p, ctypes.c_int) * 2,
    ctypes.c_float,
    ctypes.c_void_p,
    ctypes.c_int,
)


@dataclass
class NumpyBlas:
    """`cblas_sgemm` by NumPy, with the rows, columns and depth of its calls."""

    calls: list[tuple[int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the function that kernels call."""
        self.function = _SGEMM(self.multiply)

    def multiply(
        self, order: int, left: int, right: int, m: int, n: int, k: int, alpha: float, *rest: int
    ) -> None:
        """As cblas.h."""
        assert order == 101
        self.calls.append((m, n, k))
        a, a_stride, b, b_stride, beta, c, c_stride = rest
        first = _matrix(a, (k, m) if left == 112 else (m, k), a_stride)
        second = _matrix(b, (n, k) if right == 112 else (k, n), b_stride)
        result = _matrix(c, (m, n), c_stride)
        product = (first.T if left == 112 else first) @ (second.T if right == 112 else second)
        result[...] = np.float32(alpha) * product + (result * np.float32(beta) if beta else 0)


def _matrix(address: int, shape: tuple[int, int], stride: int) -> Floats:
    floats = ctypes.cast(address, ctypes.POINTER(ctypes.c_float))
    size = (shape[0] - 1) * stride + shape[1]
    flat = np.ctypeslib.as_array(floats, (size,))
    return np.lib.stride_tricks.as_strided(flat, shape, (4 * stride, 4))


@pytest.fixture
def blas(monkeypatch: pytest.MonkeyPatch) -> NumpyBlas:
    """NumPy as the library."""
    numpy_blas = NumpyBlas()
    address = ctypes.cast(numpy_blas.function, ctypes.c_void_p).value
    assert address is not None
    loaded = LoadedLibrary(MappingProxyType({"cblas_sgemm": address}), ctypes.CDLL(None))
    monkeypatch.setattr(libraries, "_loaded", lambda _: loaded)
    return numpy_blas


def take_library_away(monkeypatch: pytest.MonkeyPatch) -> None:
    why = Unavailable(
        "the package scipy_openblas32 is not installed", help="pip install 'intarsia[openblas]'"
    )
    monkeypatch.setattr(libraries, "_loaded", lambda _: why)


def matmul(left: tuple[int, ...], right: tuple[int, ...], *, is_constant: bool = False) -> IRModule:
    x = Var("x", checked_type=TensorType(left, DType.FLOAT32))
    weights = np.random.default_rng(1).normal(size=right).astype(np.float32)
    y = Constant(weights) if is_constant else Var("y", checked_type=TensorType(right, DType.FLOAT32))
    params = (x,) if isinstance(y, Constant) else (x, y)
    return IRModule.from_expr(Function(params, call("Relu", call("MatMul", x, y))))


def gemm(*, trans_a: int, trans_b: int, alpha: float, bias: tuple[int, ...] | None) -> IRModule:
    x = Var("x", checked_type=TensorType((20, 37) if trans_a else (37, 20), DType.FLOAT32))
    y = Var("y", checked_type=TensorType((45, 20) if trans_b else (20, 45), DType.FLOAT32))
    row = () if bias is None else (Var("b", checked_type=TensorType(bias, DType.FLOAT32)),)
    product = call("Gemm", x, y, *row, transA=trans_a, transB=trans_b, alpha=alpha)
    return IRModule.from_expr(Function((x, y, *row), product))


def built(mod: IRModule, libs: str = "openblas", threads: int = 2) -> Executable:
    return build(PartitionWhole(f"cpu -toolchain=native -libs={libs} -threads={threads}")(mod))


def result(exe: Executable, *arrays: Floats) -> Floats:
    """The only result of a program, in memory of its own."""
    (array,) = exe.run_flat(*arrays)
    return np.array(array)


def assert_same_as_ours(mod: IRModule, libs: str = "openblas", threads: int = 2) -> None:
    generator = np.random.default_rng(0)
    plain = build(PartitionWhole("cpu -toolchain=native -threads=1")(mod))
    shapes = [tuple(map(int, info.shape or ())) for info in plain.inputs]
    arrays = [generator.standard_normal(shape).astype(np.float32) for shape in shapes]
    expected, found = result(plain, *arrays), result(built(mod, libs, threads), *arrays)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((70, 20), (20, 33)),
        ((33, 20), (20, 90)),
        ((1, 20), (20, 1)),
        ((2, 3, 17, 20), (20, 33)),
        ((2, 3, 17, 20), (2, 3, 20, 33)),
        ((1, 17, 20), (1, 20, 33)),
    ],
)
def test_matrix_products_are_those_of_our_kernels(
    blas: NumpyBlas, left: tuple[int, ...], right: tuple[int, ...], threads: int
) -> None:
    assert_same_as_ours(matmul(left, right), threads=threads)
    assert blas.calls, "the library was not called"


def test_a_library_reads_constant_weights_as_they_are(blas: NumpyBlas) -> None:
    assert_same_as_ours(matmul((17, 20), (20, 33), is_constant=True))
    assert blas.calls


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("bias", [None, (45,), (1, 45)])
def test_gemm_in_all_orders_with_a_bias_and_a_factor(
    blas: NumpyBlas, trans_a: int, trans_b: int, bias: tuple[int, ...] | None
) -> None:
    assert_same_as_ours(gemm(trans_a=trans_a, trans_b=trans_b, alpha=0.5, bias=bias))
    assert blas.calls


def test_work_is_divided_among_threads_along_the_larger_extent(blas: NumpyBlas) -> None:
    exe = built(matmul((70, 20), (20, 33)))
    exe.run_flat(np.ones((70, 20), np.float32), np.ones((20, 33), np.float32))
    assert sorted(blas.calls) == [(22, 33, 20), (48, 33, 20)]


def test_only_the_shapes_that_a_target_names_are_the_librarys(blas: NumpyBlas) -> None:
    assert_same_as_ours(matmul((70, 20), (20, 33)), libs="openblas:70x20x34")
    assert not blas.calls
    assert_same_as_ours(matmul((70, 20), (20, 33)), libs="openblas:70x20x33,5x5x5")
    assert blas.calls


def test_a_matrix_times_itself_and_other_types_stay_ours(blas: NumpyBlas) -> None:
    x = Var("x", checked_type=TensorType((9, 9), DType.FLOAT32))
    assert_same_as_ours(IRModule.from_expr(Function((x,), call("MatMul", x, x))))
    assert not blas.calls


def test_a_missing_library_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    take_library_away(monkeypatch)
    with pytest.raises(CompileError, match="-libs=openblas is not usable here: the package") as error:
        built(matmul((7, 8), (8, 9)))
    assert error.value.help == "pip install 'intarsia[openblas]'"
    with pytest.raises(ArtifactError, match="call the library openblas, which does not work here"):
        library_symbols(OPENBLAS)


def test_an_artifact_calls_the_library_and_is_compiled_anew_without_it(
    blas: NumpyBlas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mod, path = matmul((70, 20), (20, 33), is_constant=True), tmp_path / "product.intarsia"
    x = np.random.default_rng(2).normal(size=(70, 20)).astype(np.float32)
    exe = built(mod)
    expected = result(exe, x)
    exe.save(path)
    blas.calls.clear()
    np.testing.assert_array_equal(result(ia.load(path, locked=True), x), expected)
    assert blas.calls
    take_library_away(monkeypatch)
    blas.calls.clear()
    np.testing.assert_allclose(result(ia.load(path), x), expected, rtol=1e-4, atol=1e-4)
    assert not blas.calls
    with pytest.raises(ArtifactError, match="to call the library openblas, which does not work here"):
        ia.load(path, locked=True)


def test_openblas_itself_multiplies() -> None:
    pytest.importorskip("scipy_openblas32")
    assert_same_as_ours(matmul((128, 64), (64, 96)))
    assert_same_as_ours(gemm(trans_a=1, trans_b=1, alpha=2.0, bias=(45,)))
