"""A small file cannot make the import exhaust the machine."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.onnx_models import model_of

from intarsia.frontend.onnx import ImportLimits, default_limits, from_onnx
from intarsia.ir import TensorType
from intarsia.passes import FoldConstant
from intarsia.support.errors import UnsupportedModelError

HUGE = 2**33
ADVICE = (
    "if that is meant, raise the limit: --max-elements=N on the command line, "
    "limits=ImportLimits(max_elements=N) in from_onnx"
)


def doubling_functions(depth: int) -> Any:
    """A model of a function that calls another twice, which calls another twice, and so on."""
    bodies = ['<domain: "my", opset_import: ["": 17]> f0 (a) => (b) { b = Relu(a) }']
    bodies += [
        f'<domain: "my", opset_import: ["": 17, "my": 1]> f{i} (a) => (b) '
        f"{{ t = my.f{i - 1}(a)  b = my.f{i - 1}(t) }}"
        for i in range(1, depth + 1)
    ]
    graph = f"g (float[1] x) => (float[1] y) {{ y = my.f{depth}(x) }}"
    return model_of("\n".join([graph, *bodies]), ir_version=9, imports='"my": 1')


def node(operator: str, inputs: str, type_: str = "float[2]", **attributes_and_weights: Any) -> Any:
    """A model of one node; arrays become initializers, everything else attributes."""
    weights: dict[str, Any] = {
        key: value for key, value in attributes_and_weights.items() if isinstance(value, np.ndarray)
    }
    text = ", ".join(
        f"{key} = {value!r}" for key, value in attributes_and_weights.items() if key not in weights
    )
    attributes = f"<{text}>" if text else ""
    return model_of(f"g ({type_} x) => (y) {{ y = {operator} {attributes} ({inputs}) }}", opset=18, **weights)


def numbers(*values: int) -> Any:
    return np.array(values, np.int64)


def with_sparse(dims: list[int]) -> Any:
    model = model_of("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    values = numpy_helper.from_array(np.ones(1, np.float32), "w")
    indices = numpy_helper.from_array(numbers(0), "i")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, dims))
    return model


def shape_arithmetic(node_text: str, **weights: Any) -> Any:
    """A long vector where onnx propagates shapes, in a model with a symbolic input."""
    rest = "q = Shape(x)  w = Concat <axis = 0> (t, q)  y = Reshape(x, w)"
    return model_of(f"g (float[N] x) => (y) {{ {node_text}  {rest} }}", opset=18, **weights)


def doubled(last: str, count: int, **weights: Any) -> Any:
    """A vector of 2**count elements `t`, and what is made of it."""
    names = ["k", *(f"t{i}" for i in range(count - 1)), "t"]
    joins = "  ".join(f"{b} = Concat <axis = 0> ({a}, {a})" for a, b in pairwise(names))
    return model_of(f"g (float[1] x) => (y) {{ {joins}  y = {last} }}", opset=18, k=numbers(1), **weights)


UNUSED_INPUT = "g (float[1] x, float[1099511627776] u) => (float[1] y) { y = Relu(x) }"
CASES = {
    "functions": doubling_functions(41),
    "resize": node("Resize", "x, , s", "float[1,1,2,2]", s=np.array([1, 1, 1e9, 1e9], np.float32)),
    "constant_of_shape": node("ConstantOfShape", "s", s=numbers(HUGE)),
    "range": node("Range", "a, b, c", a=np.array(0), b=np.array(HUGE), c=np.array(1)),
    "range of floats": node(
        "Range", "a, b, c", a=np.array(0.0, "f4"), b=np.array(1.0, "f4"), c=np.array(1e-10, "f4")
    ),
    "tile": node("Tile", "x, r", r=numbers(HUGE)),
    "pad": node("Pad", "x, p", p=numbers(0, HUGE)),
    "expand": node("Expand", "x, s", "float[1]", s=numbers(2**17, 2**17)),
    "outer product": node("MatMul", "x, w", "float[1048576,1]", w=np.ones((1, 4096), np.float32)),
    "padded convolution": node(
        "Conv",
        "x, w",
        "float[1,1,2,2]",
        w=np.ones((1, 1, 1, 1), np.float32),
        pads=[2**31] * 4,
        strides=[2**31] * 2,
    ),
    "unused input": model_of(UNUSED_INPUT),
    "nothing in many rows": model_of("g (float[1099511627776,0] x) => (y) { y = Relu(x) }"),
    "sparse": with_sparse([2**40]),
    "mostly zeros": with_sparse([2**30]),
    "doubled shape": doubled("ConstantOfShape(t)", 29),
    "doubled expansion": doubled("Expand(x, t)", 20),
    "doubled reshape": doubled("Reshape(x, t)", 20),
    "doubled repeats": doubled("Tile(x, t)", 20),
    "doubled starts": doubled("Slice(x, t, t)", 20),
    "doubled size": doubled("ReduceSum(x, t)", 20),
    "many axes": node("Reshape", "x, s", "float[1]", s=np.ones(2000, np.int64)),
    "propagated range": shape_arithmetic(
        "t = Range(a, b, c)", a=np.array(0), b=np.array(HUGE), c=np.array(1)
    ),
    "propagated expansion": shape_arithmetic("t = Expand(k, s)", k=numbers(1), s=numbers(HUGE)),
}
"""Models of a few hundred bytes."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, float]]:
    """What the import of each case raises, and its seconds of CPU time, in one process with little memory."""
    folder = tmp_path_factory.mktemp("models")
    for name, model in CASES.items():
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
        assert (folder / f"{name}.onnx").stat().st_size < 20_000
    run = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, str(folder)], capture_output=True, text=True, check=True
    )
    *lines, peak = run.stdout.splitlines()
    assert int(peak) < 1 << 20, f"{peak} KiB"
    rows = (line.split("\t") for line in lines)
    return {name: (outcome, float(seconds)) for name, outcome, seconds in rows}


IMPORT_ALL = """
import resource, sys, time
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))  # mapped libraries count as well
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))  # a runaway import ends
from intarsia.frontend.onnx import from_onnx
for path in Path(sys.argv[1]).iterdir():
    begin = time.process_time()
    try:
        from_onnx(path)
        outcome = "imported"
    except BaseException as error:
        outcome = type(error).__name__
    print(path.stem, outcome, time.process_time() - begin, sep="\\t", flush=True)
# Of this program alone: ru_maxrss begins with the memory of the process that started it.
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


@pytest.mark.parametrize("name", CASES)
def test_small_files_that_describe_much_are_refused(
    name: str, measured: dict[str, tuple[str, float]]
) -> None:
    outcome, seconds = measured[name]
    assert outcome == "UnsupportedModelError"
    assert seconds < 2


def refusal(model: Any, limits: ImportLimits | None = None) -> UnsupportedModelError:
    with pytest.raises(UnsupportedModelError) as caught:
        from_onnx(model, limits=limits)
    return caught.value


def test_the_refusal_names_the_value_the_node_and_the_limit(tmp_path: Path) -> None:
    onnx.save(CASES["tile"], tmp_path / "m.onnx")
    assert str(refusal(tmp_path / "m.onnx")) == (
        "the value 'y' has 17179869184 elements (Tensor[(17179869184,), float32]), "
        "more than the limit of 2147483648\n  at node 'y' (Tile) of m.onnx\nhelp: " + ADVICE
    )


@pytest.mark.parametrize("operator", ["ConstantOfShape(t)", "Expand(x, t)", "Reshape(x, t)"])
def test_values_may_have_as_many_dimensions_as_numpy_s(operator: str) -> None:
    from_onnx(doubled(operator, 6))
    assert refusal(doubled(operator, 7)).problem == (
        "the value 'y' has 128 dimensions, more than the limit of 64"
    )


def test_inputs_have_as_many_dimensions_as_numpy_s() -> None:
    for rank in (64, 65, 5000):
        model = model_of(f"g (float[{','.join('1' * rank)}] x) => (y) {{ y = Relu(x) }}")
        if rank == 64:
            from_onnx(model)
        else:
            problem = f"the value 'x' has {rank} dimensions, more than the limit of 64"
            assert refusal(model).problem == problem


def test_arguments_for_axes_are_short() -> None:
    assert refusal(doubled("Tile(x, t)", 12)).problem == (
        "argument 1 of Tile, which makes 'y', has 4096 elements, expected at most 128"
    )


def test_a_split_has_as_many_parts_as_it_likes() -> None:
    sizes = np.ones(300, np.int64)
    text = "g (float[300] x) => (y) { s = SplitToSequence(x, n)  y = ConcatFromSequence <axis = 0> (s) }"
    from_onnx(model_of(text, n=sizes))


def test_the_refusal_of_functions_counts_their_nodes() -> None:
    assert refusal(doubling_functions(41)).problem == (
        "the model has 2199023255552 nodes with its functions expanded, more than the limit of 262144"
    )


def test_functions_below_the_limit_are_expanded() -> None:
    limits = ImportLimits(max_nodes=16)
    from_onnx(doubling_functions(4), limits=limits)
    assert "32 nodes" in refusal(doubling_functions(5), limits).problem


def test_constants_of_functions_count_with_each_call() -> None:
    model = doubling_functions(17)
    constant = helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(np.zeros(1000), "k"))
    model.functions[0].node.append(constant)
    assert "bytes with its functions expanded" in refusal(model, ImportLimits(max_nodes=2**20)).problem


@pytest.mark.parametrize("elements", [4, 5])
def test_a_limit_may_be_reached(elements: int) -> None:
    model = node("Tile", "x, r", r=numbers(2))
    with default_limits(ImportLimits(max_elements=elements)):
        assert from_onnx(model)["main"].result_type == TensorType.of(np.zeros(4, np.float32))
    with default_limits(ImportLimits(max_elements=3)):
        assert "4 elements" in refusal(model).problem


def test_stored_weights_do_not_count() -> None:
    text = "g (float[2] x) => (y) { s = ReduceSum <keepdims = 0> (w)  y = Add(x, s) }"
    from_onnx(model_of(text, w=np.ones(999, np.float32)), limits=ImportLimits(max_elements=2))


def test_symbols_pass_through_shape_arithmetic_beside_a_long_vector() -> None:
    """The vector is no shape; the shapes beside it are still propagated."""
    text = """g (float[N,6] x, int64[99999] u) => (y, v) {
        s = Shape(x)  n = Gather(s, zero)  m = Unsqueeze(n, axes)  t = Concat <axis = 0> (m, rest)
        y = Reshape(x, t)  v = Add(u, u)
    }"""
    weights: dict[str, Any] = {"zero": np.array(0), "axes": numbers(0), "rest": numbers(2, 3)}
    result = from_onnx(model_of(text, opset=18, **weights))["main"].result_type
    assert str(result) == "(Tensor[(N, 2, 3), float32], Tensor[(99999,), int64])"


class TestFolding:
    def folded_bytes(self, nodes: list[Any], **weights: Any) -> int:
        """Bytes of all distinct constants of a model after constant folding."""
        from intarsia.ir import Constant, post_order

        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy")
        tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
        model = helper.make_model(helper.make_graph(nodes, "g", [x], [y], tensors), ir_version=9)
        model.opset_import[0].version = 20
        main = FoldConstant()(from_onnx(model))["main"]
        return sum(item.data.nbytes for item in post_order(main) if isinstance(item, Constant))

    def test_a_constant_that_is_joined_with_itself_again_and_again(self) -> None:
        names = ["c", *(f"t{i}" for i in range(13))]
        pairs = pairwise(names)
        nodes = [helper.make_node("Concat", [a] * 4, [b], axis=0) for a, b in pairs]
        nodes.append(helper.make_node("Add", ["x", names[-1]], ["y"]))
        assert self.folded_bytes(nodes, c=np.ones(2, np.float32)) <= 16 << 20

    def test_many_results_of_moderate_size(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("intarsia.passes.fold_constant.LARGEST_GROWTH", 1 << 20)
        nodes, last = [], "x"
        for number in range(9):
            value = numpy_helper.from_array(np.array([number], np.float32))
            name = f"y{number}" if number < 8 else "y"
            nodes.append(helper.make_node("ConstantOfShape", ["s"], [f"c{number}"], value=value))
            nodes.append(helper.make_node("Add", [last, f"c{number}"], [name]))
            last = name
        assert self.folded_bytes(nodes, s=numbers(2**16)) == 4 * 2**18 + 8
