import json

import pytest
from tests.native_workloads import matmul, min_nm

from intarsia.autoschedule.task import WorkloadRegistry
from intarsia.autoschedule.task.workload_registry import Tensors
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.support.errors import UsageError


def test_a_workload_is_found_by_the_name_of_its_function_and_by_another_name() -> None:
    registry = WorkloadRegistry()
    assert registry.register_workload(matmul) is matmul
    registry.register_workload("matmul_rename_1", matmul)
    key = registry.make_workload_key(matmul, (8, 4, 2))
    assert json.loads(key) == ["matmul", 8, 4, 2]
    renamed = registry.make_workload_key("matmul_rename_1", (8, 4, 2))
    assert json.loads(renamed) == ["matmul_rename_1", 8, 4, 2]
    for each in (key, renamed):
        assert [tensor.shape for tensor in registry.workload_key_to_tensors(each)] == [(8, 2), (2, 4), (8, 4)]


def test_decorators_give_the_function_back() -> None:
    registry = WorkloadRegistry()

    @registry.register_workload
    def one() -> Tensors:
        return min_nm()

    @registry.register_workload("other name")
    def two() -> Tensors:
        return min_nm()

    assert registry.make_workload_key(one) == '["one"]'
    assert registry.make_workload_key(two) == '["other name"]'


def test_a_taken_name_is_refused_unless_it_is_overridden() -> None:
    registry = WorkloadRegistry()
    registry.register_workload("work", matmul)
    registry.register_workload("work", matmul)  # the same function again changes nothing
    with pytest.raises(UsageError, match="workload 'work' is already registered"):
        registry.register_workload("work", min_nm)
    registry.register_workload("work", min_nm, override=True)
    assert len(registry.workload_key_to_tensors('["work", 3, 5]')) == 2


def test_tensors_in_arguments_are_placeholders_of_their_shape() -> None:
    registry = WorkloadRegistry()

    def twice(tensor: te.Tensor, axes: tuple[int, ...]) -> Tensors:
        assert axes == (0, 1)
        return tensor, te.compute(tensor.shape, lambda i, j: tensor[i, j] * 2.0, name="twice")

    registry.register_workload(twice)
    key = registry.make_workload_key(twice, (te.placeholder((3, 4), name="X"), (0, 1)))
    assert json.loads(key) == ["twice", ["TENSOR", [3, 4], "float32"], [0, 1]]
    given, made = registry.workload_key_to_tensors(key)
    assert given.shape == made.shape == (3, 4)


def test_tensors_are_found_by_the_key_they_were_registered_under() -> None:
    registry, tensors = WorkloadRegistry(), matmul()
    assert registry.register_workload_tensors("a key", tensors) == "a key"
    assert registry.workload_key_to_tensors("a key") == tensors
    with pytest.raises(UsageError, match="workload 'a key' is already registered"):
        registry.register_workload_tensors("a key", min_nm())
    registry.register_workload_tensors("a key", min_nm(), override=True)
    assert ComputeDAG(registry.workload_key_to_tensors("a key")).ops[-1].name == "B"


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("no json", "is not a workload key"),
        ("3", "is not a workload key"),
        ("[]", "is not a workload key"),
        ("[3]", "begins with 3; expected a name"),
        ('["unknown", 1]', "workload 'unknown' is not registered"),
    ],
)
def test_what_is_no_key_is_refused(key: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        WorkloadRegistry().workload_key_to_tensors(key)


def test_what_is_not_registered_has_no_key() -> None:
    registry = WorkloadRegistry()
    with pytest.raises(UsageError, match="function matmul is not registered"):
        registry.make_workload_key(matmul)
    registry.register_workload(matmul)
    with pytest.raises(UsageError, match="cannot have the argument"):
        registry.make_workload_key(matmul, [{1, 2}])  # type: ignore[list-item]  # what the error is about
