from tests.each_case import each_case
from tests.native_workloads import (
    WORKLOADS,
    conv2d_nchw_bn_relu,
    conv2d_winograd_nhwc,
    double_matmul,
    layer_norm,
    matmul,
    max_pool2d,
    softmax_nm,
    zero_rank_reduce,
)

from intarsia.ir import DType
from intarsia.ir.prim_func import Arith, ArithOp, Literal, LoopVar
from intarsia.native import te
from intarsia.native.dag import AccessAnalyzer, ComputeDAG, SimpleAccess, simple_access
from intarsia.native.te.tensor import ComputeOp, Operation


def analyzed(tensors: tuple[te.Tensor, ...]) -> tuple[AccessAnalyzer, dict[str, Operation]]:
    dag = ComputeDAG(tensors)
    return AccessAnalyzer(dag), {op.name: op for op in dag.ops}


def test_the_golden_facts_of_conv2d_bn_relu() -> None:
    """Those of the field's C++ test of its access analyzer."""
    analyzer, ops = analyzed(conv2d_nchw_bn_relu(1, 224, 224, 3, 64, 7, 2, 3))
    assert [name for name, op in ops.items() if analyzer.needs_multi_level_tiling(op)] == ["conv"]
    inlineable = [name for name, op in ops.items() if analyzer.is_strictly_inlineable(op)]
    assert inlineable == ["bias_add", "bn_mul", "bn_add", "relu"]
    assert [name for name, op in ops.items() if analyzer.is_output(op)] == ["relu"]
    assert analyzer.num_common_outer_iterators(ops["conv"], ops["bias_add"]) == 4
    assert analyzer.num_common_outer_iterators(ops["conv"], ops["relu"]) == 4
    assert analyzer.num_common_outer_iterators(ops["data"], ops["relu"]) == 1
    assert analyzer.elementwise_match(ops["conv"], ops["relu"])
    assert not analyzer.elementwise_match(ops["data"], ops["padding"])


def test_which_operations_are_tiled() -> None:
    def tiled(tensors: tuple[te.Tensor, ...]) -> list[str]:
        analyzer, ops = analyzed(tensors)
        return [name for name, op in ops.items() if analyzer.needs_multi_level_tiling(op)]

    assert tiled(matmul()) == ["C"]
    assert tiled(double_matmul()) == ["C", "E"]
    assert tiled(max_pool2d()) == []
    assert tiled(softmax_nm()) == []
    assert tiled(layer_norm()) == ["layer_norm"]  # three operands lack an axis
    assert tiled(zero_rank_reduce()) == []
    assert tiled(conv2d_winograd_nhwc()) == ["bgemm"]
    assert tiled(matmul(1, 1, 8)) == []


def test_a_matrix_times_a_vector_is_tiled() -> None:
    a, x = te.placeholder((4, 5), name="A"), te.placeholder((5,), name="x")
    k = te.reduce_axis(5, "k")
    y = te.compute((4,), lambda i: te.sum(a[i, k] * x[k], axis=k), name="y")
    analyzer, _ = analyzed((a, x, y))
    assert analyzer.needs_multi_level_tiling(y.op)


def test_constants_are_inlined_and_exp_is_not() -> None:
    analyzer, ops = analyzed(conv2d_winograd_nhwc())
    assert analyzer.is_strictly_inlineable(ops["A"])
    assert not analyzer.is_strictly_inlineable(ops["input_tile"])
    analyzer, ops = analyzed(softmax_nm())
    assert not analyzer.is_strictly_inlineable(ops["exp"])
    assert analyzer.is_strictly_inlineable(ops["norm"])
    assert not analyzer.is_strictly_inlineable(ops["maxelem"])


def test_reads() -> None:
    a, b, c = matmul()
    analyzer, _ = analyzed((a, b, c))
    i, j, k = LoopVar("i"), LoopVar("j"), LoopVar("k")
    assert analyzer.read_from[c.op] == {a.op: ((i, k),), b.op: ((k, j),)}
    assert analyzer.read_from[a.op] == {}


def test_common_loops_without_a_path_are_none() -> None:
    analyzer, ops = analyzed(double_matmul())
    assert analyzer.num_common_outer_iterators(ops["D"], ops["C"]) == 0
    assert analyzer.num_common_outer_iterators(ops["C"], ops["E"]) == 1
    assert analyzer.num_common_outer_iterators(ops["C"], ops["C"]) == 2


@each_case("name", WORKLOADS)
def test_common_loops_are_at_most_the_rank(name: str) -> None:
    analyzer, ops = analyzed(WORKLOADS[name]())
    for op in ops.values():
        for target in ops.values():
            count = analyzer.num_common_outer_iterators(op, target)
            assert 0 <= count <= len(op.buffers[0].shape)


def test_simple_accesses() -> None:
    x = te.placeholder((4, 4), name="X")
    y = te.compute((4, 4), lambda i, j: x[i, j] + 0.0, name="Y").op
    assert isinstance(y, ComputeOp)
    i, j, one = LoopVar("i"), LoopVar("j"), Literal(1, DType.INT64)
    assert simple_access(y, (i, j)) == SimpleAccess(False, False, True)
    assert simple_access(y, (j, i)) == SimpleAccess(False, False, False)
    assert simple_access(y, (i, i)) == SimpleAccess(True, True, True)
    assert simple_access(y, (one, j)) == SimpleAccess(True, False, True)
    shifted = (Arith(ArithOp.ADD, (one, i)), Arith(ArithOp.SUB, (j, one)))
    assert simple_access(y, shifted) == SimpleAccess(False, False, True)
    assert simple_access(y, (Arith(ArithOp.SUB, (one, i)), j)) is None
    assert simple_access(y, (Arith(ArithOp.MUL, (i, one)), j)) is None
    assert simple_access(y, (Arith(ArithOp.ADD, (i, j)), j)) is None
    assert simple_access(y, (LoopVar("k"), j)) is None


def test_elementwise_matches_need_one_reader_the_same_shape_and_plain_places() -> None:
    def matches(
        element: te.Expression | None = None, *, transposed: bool = False, twice: bool = False
    ) -> bool:
        x = te.placeholder((4, 4), name="X")
        y = te.compute((4, 4), lambda i, j: x[i, j] + 1.0, name="Y")
        z = te.compute((4, 4), lambda i, j: y[j, i] if transposed else y[i, j] + x[i, 0], name="Z")
        more = (te.compute((4, 4), lambda i, j: y[i, j] * 2.0, name="W"),) if twice else ()
        analyzer, _ = analyzed((x, z, *more))
        return analyzer.elementwise_match(y.op, z.op)

    assert matches()
    assert not matches(transposed=True)
    assert not matches(twice=True)


def test_what_a_statement_of_its_own_writes_is_left_alone() -> None:
    from intarsia.ir.prim_func import Buffer, For, Load, Store

    x = te.placeholder((4,), name="X")
    y = Buffer("Y", (4,), DType.FLOAT32)
    i = LoopVar("i")
    (out,) = te.extern([y], [x], For(i, 4, Store(y, (i,), Load(x.buffer, (i,)))), "Y")
    analyzer, _ = analyzed((x, out))
    assert not analyzer.is_strictly_inlineable(out.op)
    assert not analyzer.needs_multi_level_tiling(out.op)
    assert analyzer.num_common_outer_iterators(x.op, out.op) == 0
    assert not analyzer.elementwise_match(x.op, out.op)
    assert analyzer.dag.flop_ct == -1
