"""Asynchronous copies in the interpreter, as plain loops, and as LLVM IR: missing waits are found."""

import numpy as np
import pytest
from tests.gpu_on_cpu.cpu_kernels import Array, run_on_cpu
from tests.tir_checks import in_module, lines_of, parsed
from tests.unit.ir.test_kernel_verify import COPIED_ROWS, HEAD

from intarsia.ir import DType
from intarsia.ir.verify import verify
from intarsia.ir.warp import COPY_SIZES
from intarsia.native.gpu.emit_kernels import emit_kernels
from intarsia.native.gpu.generate_ptx import generate_ptx
from intarsia.native.tir import Simplify, SplitAtBarriers, UnrollLoop, interpret
from intarsia.support.errors import ExecutionError

X = np.arange(32, dtype=np.float32).reshape(4, 8)
RAGGED = COPIED_ROWS.replace("width 4;", "width 4 valid 3 - t;")
ZEROED = np.where(np.arange(8) % 4 < 3 - np.arange(8) // 4, X, 0)
# Two rows for each block: the second one is on its way while the first one is written.
BUFFERED = f"""{HEAD}
  for block b in 2 {{
    alloc rows: Buffer[(2, 8), float32, shared] {{
      for thread t in 8 {{
        async copy rows[0, t] = x[b * 2, t] width 1;
        async commit;
        for i in 2 {{
          if i < 1 {{
            async copy rows[1, t] = x[b * 2 + 1, t] width 1;
          }}
          async commit;
          async wait 1;
          barrier;
          y[b * 2 + i, t] = rows[i, 7 - t];
        }}
      }}
    }}
  }}
}}
"""
CASES = {"whole": (COPIED_ROWS, X), "ragged": (RAGGED, ZEROED), "buffered": (BUFFERED, X)}


def interpreted(text: str) -> Array:
    y = np.zeros((4, 8), np.float32)
    interpret(parsed(text), [X.copy(), y])
    return y


def compiled(text: str, *, is_descending: bool = False) -> Array:
    y = np.zeros((4, 8), np.float32)
    run_on_cpu(parsed(text), {"x": X.copy(), "y": y}, is_descending=is_descending)
    return y


@pytest.mark.parametrize("name", CASES)
def test_copies_are_there_after_the_wait(name: str) -> None:
    text, rows = CASES[name]
    np.testing.assert_array_equal(interpreted(text), rows[:, ::-1])
    for is_descending in (False, True):
        np.testing.assert_array_equal(compiled(text, is_descending=is_descending), rows[:, ::-1])


@pytest.mark.parametrize("name", CASES)
def test_copies_as_plain_loops_compute_the_same(name: str) -> None:
    text, rows = CASES[name]
    split = SplitAtBarriers()(in_module(parsed(text)))
    verify(split)
    assert not any("async" in line for line in lines_of(split.prim_func("f")))
    y = np.zeros((4, 8), np.float32)
    interpret(split.prim_func("f"), [X.copy(), y])
    np.testing.assert_array_equal(y, rows[:, ::-1])


@pytest.mark.parametrize("name", CASES)
def test_a_missing_wait_is_a_race_and_breaks_the_result(name: str) -> None:
    text, rows = CASES[name]
    wait = "async wait 1;" if name == "buffered" else "async wait 0;"
    faulty = text.replace(wait, "")
    with pytest.raises(ExecutionError, match=r"the copy of thread . race for element"):
        interpreted(faulty)
    with pytest.raises(AssertionError, match="a thread ends while its copies are under way"):
        compiled(faulty)
    late = faulty.replace("rows[i, 7 - t];", "rows[i, 7 - t]; async wait 0;")
    late = late.replace("row[7 - t * 4 - i];", "row[7 - t * 4 - i]; async wait 0;")
    results = [compiled(late, is_descending=is_descending) for is_descending in (False, True)]
    assert not all(np.array_equal(result, rows[:, ::-1]) for result in results)


@pytest.mark.parametrize("name", CASES)
def test_a_missing_barrier_after_the_wait_is_a_race(name: str) -> None:
    text, rows = CASES[name]
    faulty = text.replace("barrier;", "")
    with pytest.raises(ExecutionError, match="race for element"):
        interpreted(faulty)
    results = [compiled(faulty, is_descending=is_descending) for is_descending in (False, True)]
    assert not all(np.array_equal(result, rows[:, ::-1]) for result in results)


def test_a_wait_that_leaves_too_many_groups_is_a_race() -> None:
    with pytest.raises(ExecutionError, match="race for element"):
        interpreted(BUFFERED.replace("async wait 1;", "async wait 2;"))


def test_a_copy_into_what_others_still_read_is_a_race() -> None:
    text = BUFFERED.replace("rows[1, t] =", "rows[0, t] =").replace("rows[i, 7 - t]", "rows[0, 7 - t]")
    with pytest.raises(ExecutionError, match="race for element"):
        interpreted(text)


def test_a_thread_that_ends_before_its_copies_is_an_error() -> None:
    text = COPIED_ROWS.replace("async commit;", "").replace("= row[7 - t * 4 - i]", "= 0.0f32")
    with pytest.raises(ExecutionError, match="thread 0 of block 0 ends while its copy into element 0 of row"):
        interpreted(text)


def test_a_misaligned_copy_is_an_error() -> None:
    text = COPIED_ROWS.replace("x[b, t * 4]", "x[b, t * 2]")
    with pytest.raises(ExecutionError, match="16 bytes from element 2 to element 4 of row; expected"):
        interpreted(text)
    with pytest.raises(AssertionError, match="no multiple of the size"):
        compiled(text)


def test_only_what_is_read_must_lie_inside() -> None:
    beyond = COPIED_ROWS.replace("x[b, t * 4] width 4;", "x[b, t * 8] width 4 valid (1 - t) * 4;")
    expected = np.where(np.arange(8) < 4, X, 0)[:, ::-1]
    np.testing.assert_array_equal(interpreted(beyond), expected)
    np.testing.assert_array_equal(compiled(beyond), expected)
    with pytest.raises(ExecutionError, match="index 1 of x is 8; expected 0 to 7"):
        interpreted(COPIED_ROWS.replace("x[b, t * 4]", "x[b, t * 8]"))
    with pytest.raises(ExecutionError, match="index 0 of row is 8; expected 0 to 7"):
        interpreted(COPIED_ROWS.replace("row[t * 4] =", "row[t * 4 + 4] =").replace("7 -", "3 -"))
    with pytest.raises(ExecutionError, match="a copy of 4 elements reads 5"):
        interpreted(COPIED_ROWS.replace("width 4;", "width 4 valid 5;").replace("x[b, t * 4]", "x[b, 0]"))


def test_passes_rewrite_copies_like_stores() -> None:
    loop = "for unrolled i in 2 { async copy row[t * 4] = x[b, t * 4 + i * 0] width 4 valid 3 + 1; "
    loop += "async commit; async wait 0; }"
    text = COPIED_ROWS.replace("async copy row[t * 4] = x[b, t * 4] width 4;", loop)
    after = Simplify()(UnrollLoop()(in_module(parsed(text)))).prim_func("f")
    copies = [line.strip() for line in lines_of(after) if "copy" in line]
    assert copies == ["async copy row[t * 4] = x[b, t * 4] width 4;"] * 2
    unread = Simplify()(in_module(parsed(COPIED_ROWS.replace("row[7 - t * 4 - i]", "0.0f32"))))
    assert not any("copy" in line for line in lines_of(unread.prim_func("f")))


def test_ptx_has_the_instructions_of_copies() -> None:
    ptx = generate_ptx(emit_kernels(parsed(COPIED_ROWS), "k", "sm_80").text, "sm_80")
    for instruction in ("cp.async.cg.shared.global", "cp.async.commit_group", "cp.async.wait_group"):
        assert instruction in ptx
    ragged = generate_ptx(emit_kernels(parsed(BUFFERED), "k", "sm_80").text, "sm_80")
    assert "cp.async.ca.shared.global" in ragged


WIDTHS = [
    (dtype, width)
    for dtype in ("int8", "float16", "bfloat16", "float32", "int64")
    for width in (1, 2, 4, 8, 16)
    if width * DType(dtype).numpy.itemsize in COPY_SIZES
]


@pytest.mark.parametrize(("dtype", "width"), WIDTHS)
def test_copies_of_each_type_and_size(dtype: str, width: int) -> None:
    count = 3 * width
    text = f"""def prim @f(x: Buffer[(2, {count}), {dtype}], n: Buffer[(3,), int64], y: Buffer[(2, {count}), {dtype}]) {{
  for block b in 2 {{
    alloc row: Buffer[({count},), {dtype}, shared] {{
      for thread t in 3 {{
        async copy row[t * {width}] = x[b, t * {width}] width {width} valid n[t];
        async commit;
        async wait 0;
        barrier;
        for i in {width} {{
          y[b, t * {width} + i] = row[(2 - t) * {width} + i];
        }}
      }}
    }}
  }}
}}
"""  # noqa: E501  # a kernel
    kind = DType(dtype).numpy
    x = (np.arange(2 * count) % 100 + 1).astype(kind).reshape(2, count)
    valid = np.array([width, 0, width // 2], np.int64)
    kept = np.concatenate([np.arange(width) < number for number in valid])
    expected = np.where(kept, x, np.zeros((), kind)).reshape(2, 3, width)[:, ::-1].reshape(2, count)
    results = [np.full((2, count), 77, kind) for _ in range(3)]
    function = parsed(text)
    interpret(function, [x.copy(), valid.copy(), results[0]])
    interpret(SplitAtBarriers()(in_module(function)).prim_func("f"), [x.copy(), valid.copy(), results[1]])
    run_on_cpu(function, {"x": x.copy(), "n": valid.copy(), "y": results[2]})
    for result in results:
        np.testing.assert_array_equal(result.astype(np.float64), expected.astype(np.float64))
