"""SplitAtBarriers: kernels compute on a CPU what they compute in threads."""

import numpy as np
from tests.tir_checks import assert_same_bits, in_module, lines_of, parsed, random_arrays, results
from tests.unit.ir.test_kernel_verify import HEAD, REVERSED_ROWS

from intarsia.ir import PrimFunc
from intarsia.ir.verify import verify
from intarsia.native.tir import SplitAtBarriers


def split(function: PrimFunc) -> PrimFunc:
    after = SplitAtBarriers()(in_module(function)).prim_func("f")
    verify(in_module(after))
    arrays = random_arrays(function)
    assert_same_bits(results(after, arrays), results(function, arrays))
    return after


def test_a_buffer_that_lives_across_a_barrier_has_an_element_for_each_thread() -> None:
    body = "alloc kept: Buffer[(), float32] { kept[] = x[b, t]; row[t] = kept[]; barrier; "
    body += "y[b, t] = kept[] + row[7 - t]; }"
    text = REVERSED_ROWS.split("row[t] =")[0] + body + "}}}}"
    assert "alloc kept: Buffer[(8,), float32] {" in "\n".join(lines_of(split(parsed(text))))


def test_a_loop_around_a_barrier_stays_around_the_threads() -> None:
    loop = "for i in 3 { row[t] = x[b, t]; barrier; "
    loop += "if b < 2 { y[b, t] = row[7 - t]; barrier; } else { barrier; } }"
    text = REVERSED_ROWS.split("row[t] =")[0] + loop + "}}}}"
    lines = [line.strip() for line in lines_of(split(parsed(text)))]
    assert lines.index("for i in 3 {") < lines.index("for t in 8 {")
    assert "barrier;" not in lines


def test_a_kernel_without_barriers_is_one_loop() -> None:
    after = split(parsed(f"{HEAD} for block b in 4 {{ for thread t in 8 {{ y[b, t] = x[b, t]; }} }} }}"))
    assert [line.strip() for line in lines_of(after)][:2] == ["for parallel b in 4 {", "for t in 8 {"]


def test_a_function_of_a_cpu_stays() -> None:
    function = parsed(f"{HEAD} for i in 4 {{ y[i, 0] = x[i, 0]; }} }}")
    module = in_module(function)
    assert SplitAtBarriers()(module) is module
    assert np.array_equal(
        results(function, random_arrays(function))[1][:, 0], random_arrays(function)[0][:, 0]
    )
