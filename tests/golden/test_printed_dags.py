from collections.abc import Callable

import pytest
from tests.native_workloads import WORKLOADS, conv2d_nchw_bn_relu, matmul

from intarsia.native import te
from intarsia.native.dag import ComputeDAG, dag_text

Check = Callable[[str, str], None]


def test_every_workload_as_text(check_golden: Check) -> None:
    texts = [f"# {name}\n{ComputeDAG(workload())}" for name, workload in WORKLOADS.items()]
    check_golden("native_dags.txt", "\n".join(texts))


def test_the_fields_examples() -> None:
    assert str(ComputeDAG(matmul(512, 512, 512))) == (
        "A = PLACEHOLDER [512, 512]\nB = PLACEHOLDER [512, 512]\nC(i, j) += (A[i, k]*B[k, j])\n"
    )
    a = te.placeholder((4, 4), name="A")
    k = te.reduce_axis(4, "k")
    for function, sign in ((te.max, " max="), (te.min, " min="), (te.prod, " *=")):
        b = te.compute((4,), lambda i, function=function: function(a[i, k], axis=k), name="B")
        assert str(ComputeDAG((a, b))).splitlines()[1] == f"B(i){sign} A[i, k]"


@pytest.mark.parametrize("sizes", [(1, 6, 6, 3, 4), (2, 9, 8, 5, 7)])
def test_the_simple_text_has_no_sizes_of_tensors(sizes: tuple[int, ...]) -> None:
    text = dag_text(ComputeDAG(conv2d_nchw_bn_relu(*sizes)).ops, simple=True)
    assert text.splitlines()[:2] == ["data = PLACEHOLDER", "padding(i, j, k, m) = if_then_else"]


def test_long_lines_lose_their_middle() -> None:
    a = te.placeholder((4,), name="A")

    def element(i: te.Expression) -> te.Expression:
        found = a[i]
        for _ in range(50):
            found = found + a[i]
        return found

    dag = ComputeDAG((a, te.compute((4,), element, name="B")))
    line = str(dag).splitlines()[1]
    assert len(line) < 300
    assert line.startswith("B(i) = ((((")
    assert " ..(OMITTED).. " in line
    assert len(dag_text(dag.ops, shorten=False).splitlines()[1]) > 300
