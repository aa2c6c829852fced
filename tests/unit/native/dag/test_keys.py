import json
import re

import pytest
from tests.native_workloads import WORKLOADS, Tensors, matmul

from intarsia.ir import DType
from intarsia.native import te
from intarsia.native.dag import ComputeDAG, structural_key, workload_key


def scaled(
    name: str = "B",
    axis: str = "i",
    extent: int = 4,
    factor: float = 2.0,
    dtype: DType = DType.FLOAT32,
    attrs: dict[str, str] | None = None,
) -> Tensors:
    a = te.placeholder((extent,), dtype, name=f"{name}_in")
    return a, te.compute((extent,), lambda i: a[i] * factor, name=name, axis_names=[axis], attrs=attrs or {})


def key(tensors: Tensors) -> str:
    return structural_key(ComputeDAG(tensors))


def test_names_are_no_part_of_the_structural_key() -> None:
    assert key(scaled()) == key(scaled())
    assert key(scaled()) == key(scaled(name="other"))
    assert key(scaled()) == key(scaled(axis="x"))


@pytest.mark.parametrize(
    "other",
    [
        scaled(extent=5),
        scaled(factor=3.0),
        scaled(dtype=DType.FLOAT64),
        scaled(attrs={"auto_scheduler_task_scheduler_tag": "x"}),
        tuple(reversed(scaled())),
        scaled()[1:],
    ],
)
def test_all_else_is(other: Tensors) -> None:
    assert key(other) != key(scaled())


def test_every_workload_has_keys_of_its_own() -> None:
    assert len({key(workload()) for workload in WORKLOADS.values()}) == len(WORKLOADS)
    assert len({workload_key(ComputeDAG(workload())) for workload in WORKLOADS.values()}) == len(WORKLOADS)


def test_the_key_is_the_same_in_every_process() -> None:
    assert key(matmul(8, 8, 8)) == "ca4b33eb37a3592d6fb7252ba0fa4601"


def test_the_fields_key_has_a_digest_of_the_text_and_the_shapes() -> None:
    digest, *shapes = json.loads(workload_key(ComputeDAG(matmul(2, 3, 4))))
    assert re.fullmatch("[0-9a-f]{32}", digest)
    assert shapes == [[2, 4], [4, 3], [2, 3]]
    other, *_ = json.loads(workload_key(ComputeDAG(matmul(5, 6, 7))))
    assert other == digest
    assert workload_key(ComputeDAG(matmul(2, 3, 4)), digest=lambda text: text[:5]).startswith('["A = P"')


def test_axis_names_in_attributes_are_no_names() -> None:
    def unrolled(axis: str) -> Tensors:
        a = te.placeholder((4,), name="A")
        attrs = {"auto_scheduler_always_unroll_inner": (axis,)}
        return a, te.compute((4,), lambda i: a[i] * 2.0, name="B", axis_names=[axis], attrs=attrs)

    assert key(unrolled("i")) == key(unrolled("x"))
