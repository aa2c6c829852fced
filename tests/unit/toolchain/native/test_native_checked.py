"""`-checked=true`: computed indices that are out of range are errors of the call, which name the node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper
from tests.end_to_end.command_line import within
from tests.onnx_models import model_of, onnxruntime_outputs, saved

import intarsia as ia
from intarsia.frontend.onnx import from_onnx
from intarsia.support.errors import ArtifactError, CompileError, ExecutionError
from intarsia.target import Target
from intarsia.toolchain.native.blob import read_blob, write_blob
from intarsia.toolchain.native.build import build_region
from intarsia.tune.passes import TuneFlags

pytestmark = pytest.mark.quick_tests(
    18,
    also=[
        "test_a_saved_program_is_checked[object code]",
        "test_an_index_out_of_range_at_either_end_is_an_error_of_the_call[ReverseSequence of inner steps-2]",
        "test_an_index_out_of_range_at_either_end_is_an_error_of_the_call[RotaryEmbedding-2]",
    ],
)

CHECKED = "cpu -toolchain=native -checked=true"
PLAIN = "cpu -toolchain=native"
THREADS = (2, pytest.param(1, marks=pytest.mark.slow))


@dataclass(frozen=True)
class Case:
    """A model of one operator with computed indices.

    Attributes:
        graph: Its text; the first inputs are random, the last one are the indices.
        lowest: Smallest valid index, by coordinate.
        highest: Largest valid index, by coordinate.
        opset: Version of the operators.
        imports: Further domains.
        node: First output of the node with the indices.
        noun: Noun for an index in messages.
        weights: Arrays that the model has beside its inputs.
    """

    graph: str
    lowest: tuple[int, ...]
    highest: tuple[int, ...]
    opset: int = 24
    imports: str = ""
    node: str = "y"
    noun: str = "index"
    weights: Mapping[str, Any] = field(default_factory=dict)

    @property
    def model(self) -> Any:
        return model_of(self.graph, opset=self.opset, imports=self.imports, ir_version=10, **self.weights)

    @property
    def label(self) -> str:
        """How messages name the node with the indices."""
        (node,) = (item for item in self.model.graph.node if item.output[0] == self.node)
        return f"node '{self.node}' ({node.domain}{'::' if node.domain else ''}{node.op_type})"

    def feeds(self, indices: Any) -> dict[str, Any]:
        generator = np.random.default_rng(0)
        *inputs, last = self.model.graph.input
        arrays: dict[str, Any] = {}
        for item in inputs:
            shape = [dim.dim_value for dim in item.type.tensor_type.shape.dim]
            arrays[item.name] = generator.standard_normal(shape).astype(np.float32)
        kind = {6: np.int32, 7: np.int64}[last.type.tensor_type.elem_type]
        return arrays | {last.name: np.asarray(indices, kind)}

    def indices(self, coordinate: int = 0, value: int | None = None) -> Any:
        """Random valid indices, the first of them `value`."""
        shape = [dim.dim_value for dim in self.model.graph.input[-1].type.tensor_type.shape.dim]
        generator, count = np.random.default_rng(1), len(self.lowest)
        indices = np.zeros(shape, np.int64)
        rows = indices.reshape(-1, count)
        for position, (low, high) in enumerate(zip(self.lowest, self.highest, strict=True)):
            choices = generator.permutation(np.arange(low, high + 1))
            rows[:, position] = np.resize(choices, len(rows))
        if value is not None:
            rows[0, coordinate] = value
        return indices


LENGTHS: Any = ((0,), (4,), 24, "", "y", "length")
"""Of sequences of up to four steps."""


def recurrent(name: str, gates: int, layout: int) -> Case:
    shape = "2,4,3" if layout else "4,2,3"
    graph = (
        f"g (float[{shape}] x, int32[2] i) => (y) "
        f"{{ y = {name} <hidden_size = 2, layout = {layout}> (x, w, r, , i) }}"
    )
    w, r = (np.full((1, 2 * gates, size), 0.3, np.float32) for size in (3, 2))
    return replace(Case(graph, *LENGTHS), weights={"w": w, "r": r})


CASES = {
    "Gather": Case("g (float[4,3] x, int64[2,5] i) => (float[2,5,3] y) { y = Gather (x, i) }", (-4,), (3,)),
    "Gather of an inner axis, behind others": Case(
        "g (float[4,3] x, int32[1] i) => (float[4,1] y) "
        "{ z = Relu (x)  j = Neg (i)  k = Neg (j)  w = Gather <axis = -1> (z, k)  y = Neg (w) }",
        (-3,),
        (2,),
        node="w",
    ),
    "GatherElements": Case(
        "g (float[4,3] x, int64[2,3] i) => (float[2,3] y) { y = GatherElements (x, i) }", (-4,), (3,)
    ),
    "GatherND": Case(
        "g (float[2,4,3,5] x, int64[2,3,2] i) => (float[2,3,5] y) { y = GatherND <batch_dims = 1> (x, i) }",
        (-4, -3),
        (3, 2),
    ),
    "ScatterElements": Case(
        "g (float[4,3] x, float[2,3] u, int64[2,3] i) => (float[4,3] y) "
        '{ y = ScatterElements <axis = 1, reduction = "add"> (x, i, u) }',
        (-3,),
        (2,),
    ),
    "ScatterND": Case(
        "g (float[4,3] x, float[2] u, int64[2,2] i) => (float[4,3] y) { y = ScatterND (x, i, u) }",
        (-4, -3),
        (3, 2),
    ),
    "TensorScatter": Case(
        "g (float[2,7,3] x, float[2,2,3] u, int64[2] i) => (float[2,7,3] y) { y = TensorScatter (x, u, i) }",
        (0,),
        (5,),
    ),
    "RotaryEmbedding": Case(
        "g (float[1,2,3,4] x, float[9,2] c, float[9,2] s, int64[1,3] i) => (float[1,2,3,4] y) "
        "{ y = RotaryEmbedding (x, c, s, i) }",
        (-9,),
        (8,),
    ),
    "ArrayFeatureExtractor": Case(
        "g (float[4,3] x, int64[2] i) => (float[4,2] y) { y = ai.onnx.ml.ArrayFeatureExtractor (x, i) }",
        (-3,),
        (2,),
        imports='"ai.onnx.ml": 3',
    ),
    "ReverseSequence": Case(
        "g (float[4,3] x, int64[3] i) => (float[4,3] y) { y = ReverseSequence (x, i) }", *LENGTHS
    ),
    "ReverseSequence of inner steps": Case(
        "g (float[3,4,2] x, int64[3] i) => (float[3,4,2] y) "
        "{ y = ReverseSequence <batch_axis = 0, time_axis = 1> (x, i) }",
        *LENGTHS,
    ),
    "Attention": Case(
        "g (float[2,1,3,8] q, float[2,1,4,8] k, int64[2] i) => (float[2,1,3,8] y) "
        "{ y = Attention (q, k, k, , , , i) }",
        *LENGTHS,
    ),
    "Attention without heads": Case(
        "g (float[2,3,8] q, float[2,4,8] k, int64[2] i) => (float[2,3,8] y) "
        "{ y = Attention <q_num_heads = 2, kv_num_heads = 2> (q, k, k, , , , i) }",
        *LENGTHS,
    ),
    **{
        f"{name}{' batch first' * layout}": recurrent(name, gates, layout)
        for name, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4))
        for layout in (0, 1)
    },
}


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("name", CASES)
def test_an_index_out_of_range_at_either_end_is_an_error_of_the_call(name: str, threads: int) -> None:
    case = CASES[name]
    with ia.build(from_onnx(case.model), f"{CHECKED} -threads={threads}") as executable:
        for coordinate, (low, high) in enumerate(zip(case.lowest, case.highest, strict=True)):
            for index in (low - 1, high + 1, -(2**31) + 1, 2**31 - 1):
                with pytest.raises(ExecutionError) as caught:
                    executable(**case.feeds(case.indices(coordinate, index)))
                where = f" at coordinate {coordinate} of index tuples" if len(case.lowest) > 1 else ""
                assert caught.value.problem == (
                    f"{case.label}: {case.noun} {index}{where} is out of range, expected {low} to {high}"
                )
        executable(**case.feeds(case.indices()))  # the next call is a new one


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("name", CASES)
def test_indices_in_range_compute_the_same(name: str, threads: int) -> None:
    case = CASES[name]
    indices = [case.indices()]
    for coordinate, ends in enumerate(zip(case.lowest, case.highest, strict=True)):
        indices += [case.indices(coordinate, end) for end in ends]
    module = from_onnx(case.model)
    with (
        ia.build(module, f"{CHECKED} -threads={threads}") as checked,
        ia.build(module, f"{PLAIN} -threads={threads}") as plain,
    ):
        for each in indices:
            np.testing.assert_array_equal(checked(**case.feeds(each)), plain(**case.feeds(each)))


ALSO_REFUSED = [
    *("Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "TensorScatter"),
    *("ReverseSequence", "Attention", "Attention without heads", "RNN", "GRU", "LSTM"),
]


@pytest.mark.parametrize("name", ALSO_REFUSED)
def test_the_range_is_the_one_of_onnxruntime(name: str) -> None:
    case = CASES[name]
    for coordinate, (low, high) in enumerate(zip(case.lowest, case.highest, strict=True)):
        for index in (low, high):
            onnxruntime_outputs(case.model, case.feeds(case.indices(coordinate, index)))
        for index in (low - 1, high + 1):
            with pytest.raises(Exception, match=r"indice|out of|index|length|sequence_lens"):
                onnxruntime_outputs(case.model, case.feeds(case.indices(coordinate, index)))


def test_circular_places_and_indices_without_elements_have_no_range() -> None:
    circular = CASES["TensorScatter"].graph.replace("(x, u, i)", '<mode = "circular"> (x, u, i)')
    empty = "g (float[4,3] x, int64[0] i) => (float[0,3] y) { y = Gather (x, i) }"
    for graph, indices in ((circular, [9, 100]), (empty, [])):
        case = Case(graph, (), ())
        with (
            ia.build(from_onnx(case.model), CHECKED) as checked,
            ia.build(from_onnx(case.model), PLAIN) as plain,
        ):
            feeds = case.feeds(indices)
            np.testing.assert_array_equal(checked(**feeds), plain(**feeds))


def test_an_empty_axis_has_no_valid_index() -> None:
    case = Case("g (float[0,3] x, int64[2] i) => (float[2,3] y) { y = Gather (x, i) }", (0,), (0,))
    with (
        ia.build(from_onnx(case.model), CHECKED) as executable,
        pytest.raises(ExecutionError, match="index 0 is out of range, expected none, as the axis is empty"),
    ):
        executable(**case.feeds([0, 0]))


TWO = """g (float[4,3] x, int64[2] i, int64[2] j) => (float[2,3] a, int64[n,k] d, float[2,2] b) {
    a = Gather (x, i)  c = Relu (a)  b = Gather <axis = 1> (c, j)  e = NonZero (x)  d = Transpose (e)
}"""


def test_each_operator_has_a_check_beside_counted_results() -> None:
    x = np.eye(4, 3, dtype=np.float32)
    with ia.build(from_onnx(model_of(TWO, opset=21)), CHECKED) as executable:
        a, d, b = executable(x=x, i=np.array([0, -1]), j=np.array([2, 1]))
        np.testing.assert_array_equal(a, x[[0, 3]])
        np.testing.assert_array_equal(b, a[:, [2, 1]])
        np.testing.assert_array_equal(d, [[0, 0], [1, 1], [2, 2]])
        with pytest.raises(ExecutionError, match=r"^node 'a' \(Gather\): index 4 "):
            executable(x=x, i=np.array([0, 4]), j=np.array([2, 1]))
        with pytest.raises(ExecutionError, match=r"^node 'b' \(Gather\): index -4 "):
            executable(x=x, i=np.array([0, 3]), j=np.array([-4, 1]))


def test_results_may_be_written_to_the_caller_s_arrays() -> None:
    case = CASES["Gather"]
    feeds = case.feeds(case.indices())
    (kernel,) = ia.build(from_onnx(case.model), CHECKED).kernels
    out = np.zeros((2, 5, 3), np.float32)
    results = kernel.run(list(feeds.values()), [out])
    assert len(results) == 1
    assert results[0] is out
    np.testing.assert_array_equal(out, feeds["x"][feeds["i"]])


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("target", [CHECKED, pytest.param(PLAIN, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CASES)
def test_constants_out_of_range_are_refused_when_building(name: str, target: str) -> None:
    case = CASES[name]
    for coordinate, (low, high) in enumerate(zip(case.lowest, case.highest, strict=True)):
        for index, is_right in ((low, True), (high, True), (low - 1, False), (high + 1, False)):
            model = with_constant(case.model, case.feeds(case.indices(coordinate, index)))
            if is_right:
                ia.build(from_onnx(model), target).close()
                continue
            with pytest.raises(CompileError) as caught:
                ia.build(from_onnx(model), target)
            assert f" {index}" in caught.value.problem
            assert f"at node '{case.node}'" in str(caught.value)


def with_constant(model: Any, feeds: dict[str, Any]) -> Any:
    """The model with its last input as an initializer."""
    name = model.graph.input[-1].name
    del model.graph.input[-1]
    model.graph.initializer.append(numpy_helper.from_array(feeds[name], name))
    return model


def test_constant_indices_are_refused_when_building() -> None:
    model = model_of("g (float[4] x) => (float[1] y) { y = Gather (x, i) }", i=np.array([4]))
    with pytest.raises(CompileError, match="the index 4 of an axis of 4 elements"):
        ia.build(from_onnx(model), CHECKED)


@pytest.mark.parametrize("is_trusted", [True, False], ids=["object code", "source"])
def test_a_saved_program_is_checked(tmp_path: Path, is_trusted: bool) -> None:
    case, path = CASES["GatherND"], tmp_path / "checked.intarsia"
    with ia.build(from_onnx(case.model), CHECKED) as executable:
        executable.save(path)
        expected = executable(**case.feeds(case.indices()))
    with ia.load(path, trusted=is_trusted) as loaded:
        np.testing.assert_array_equal(loaded(**case.feeds(case.indices())), expected)
        with pytest.raises(ExecutionError, match=r"node 'y' .* index 9 at coordinate 1 of index tuples"):
            loaded(**case.feeds(case.indices(1, 9)))


def test_nothing_is_added_without_the_option() -> None:
    case = CASES["Gather"]
    for target, count in ((PLAIN, 0), (f"{PLAIN} -checked=false", 0), (CHECKED, 1)):
        (kernel,) = ia.build(from_onnx(case.model), target).kernels
        region = build_region(kernel.source)
        assert (len(region.checks), len(region.results)) == (count, 1 + 2 * count)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ((b'"checks":[[1,2,', b'"checks":[[1,9,'), "refer to number 9 of 3"),
        ((b'"checks":[[1,2,', b'"checks":[[0,2,'), "does not fit the 1 limits of node 'y'"),
        ((b",[4],true]]", b",[4,4],true]]"), "does not fit the 2 limits of node 'y'"),
        ((b",[4],true]]", b",[-4],true]]"), "expected"),
        ((b",[4],true]]", b",[4],true],[1,2,'',[4],true]]".replace(b"'", b'"')), "2 checks of 3 results"),
    ],
)
def test_damaged_checks_are_artifact_errors(damage: tuple[bytes, bytes], message: str) -> None:
    (kernel,) = ia.build(from_onnx(CASES["Gather"].model), CHECKED).kernels
    blob = write_blob(build_region(kernel.source))
    line, _, content = blob.partition(b"\n")
    changed = line.replace(*damage)
    assert changed != line
    start, begin = len(line) + 1, len(changed) + 1
    content = content[-start % 64 :]
    with pytest.raises(ArtifactError, match=message):
        read_blob(changed + b"\n" + b"\0" * (-begin % 64) + content, {})


def test_flags_of_speed_do_not_include_it() -> None:
    names = [option.name for option in TuneFlags()._options("native")]
    assert "prefetch" in names
    assert "checked" not in names
    assert "compiled" not in [option.name for option in TuneFlags()._options("torch")]


def test_the_command_line_ends_with_one_line_and_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES["Gather"]
    monkeypatch.chdir(tmp_path)
    saved(case.model, tmp_path / "model.onnx")
    np.savez(tmp_path / "inputs.npz", **case.feeds(case.indices(0, 4)))
    outcome = within(["run", "model.onnx", "--input", "inputs.npz", "--toolchain", CHECKED, "-q"])
    assert outcome.code == 1
    assert outcome.out == ""
    assert outcome.err == (
        "error: node 'y' (Gather): index 4 is out of range, expected -4 to 3\n  in kernel main_native\n"
    )


def test_the_option_is_one_of_native() -> None:
    assert Target(CHECKED).option("checked") is True
