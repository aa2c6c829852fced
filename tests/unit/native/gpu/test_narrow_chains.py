"""Elementwise chains and reductions of float16 and bfloat16 on GPUs, on each level of proof."""

import pytest
from tests.gpu_on_cpu.kernel_checks import interpreted, on_this_cpu
from tests.gpu_on_cpu.program_dags import dags_of, normal_numbers, relative_error

from intarsia.native.gpu.default_gpu_state import gpu_kernels
from intarsia.native.gpu.emit_kernels import emit_kernels
from intarsia.native.gpu.generate_ptx import generate_ptx
from intarsia.native.lowering import lower_naive

PROGRAMS = {
    "chain": "(%x: Tensor[(9, 40), $t], %y: Tensor[(40), $t]) { Relu(Add(Mul(%x, %y), %x)) }",
    "function": "(%x: Tensor[(9, 40), $t]) { Mul(%x, Sigmoid(%x)) }",
    "greatest": "(%x: Tensor[(9, 300), $t]) { ReduceMax(%x, keepdims=0) }",
    "softmax": "(%x: Tensor[(9, 100), $t]) { Softmax(%x, axis=-1) }",
    "layer norm": "(%x: Tensor[(9, 64), $t], %s: Tensor[(64), $t]) { LayerNormalization(%x, %s, axis=-1) }",
}


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_narrow_types_are_computed_on_each_level(name: str, dtype: str) -> None:
    for dag in dags_of("def @main" + PROGRAMS[name].replace("$t", dtype)):
        function, inputs = gpu_kernels(dag), normal_numbers(dag)
        expected = interpreted(lower_naive(dag.outputs), inputs)
        assert relative_error(interpreted(function, inputs), expected) < 1e-2
        for is_descending in (False, True):
            results = on_this_cpu(function, inputs, is_descending=is_descending)
            assert relative_error(results, expected) < 1e-2
        assert ".entry k_0" in generate_ptx(emit_kernels(function, "k", "sm_80").text, "sm_80")
