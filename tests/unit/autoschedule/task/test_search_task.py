import json
import pickle

import numpy as np
import pytest
from tests.native_workloads import matmul

from intarsia.autoschedule.task import WORKLOADS, HardwareParams, SearchTask
from intarsia.native.dag import ComputeDAG, workload_key
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.support.errors import UsageError
from intarsia.target.target import Target

TARGET, HARDWARE = Target("cpu"), HardwareParams(4)


def test_the_task_of_a_dag_has_the_key_of_its_text() -> None:
    dag = ComputeDAG(matmul())
    task = SearchTask.of_dag(dag, TARGET, HARDWARE)
    assert task.workload_key == workload_key(dag)
    assert task.layout_rewrite_option is LayoutRewriteOption.INSERT_TRANSFORM_STAGE


def test_the_task_of_a_workload_is_made_by_name_or_function() -> None:
    name = "test_search_task.matmul"
    WORKLOADS.register_workload(name, matmul, override=True)
    task = SearchTask.of_workload(name, (4, 6, 8), TARGET, HARDWARE)
    assert json.loads(task.workload_key) == [name, 4, 6, 8]
    assert task.dag.flop_ct == 2 * 4 * 6 * 8
    assert SearchTask.of_workload(matmul, (4, 6, 8), TARGET, HARDWARE).dag.flop_ct == 2 * 4 * 6 * 8


def test_a_task_is_written_as_the_log_has_it() -> None:
    inputs = {"B": np.zeros((8, 8), np.float32)}
    task = SearchTask(ComputeDAG(matmul()), TARGET, HARDWARE, "key", task_inputs=inputs)
    found = task.record_task
    assert (found.workload_key, found.target, found.target_host) == ("key", "cpu", "")
    assert found.hardware_params == (4, 64, 64, 0, 0, 0, 0, 0)
    assert found.layout_rewrite_option == 1
    assert found.task_input_names == ("B",)


def test_a_task_goes_to_another_process() -> None:
    inputs = {"A": np.ones((8, 8), np.float32)}
    task = SearchTask(ComputeDAG(matmul()), TARGET, HARDWARE, "key", task_inputs=inputs)
    again = pickle.loads(pickle.dumps(task))
    assert str(again.dag) == str(task.dag)
    assert again.record_task == task.record_task
    np.testing.assert_array_equal(again.task_inputs["A"], inputs["A"])


@pytest.mark.parametrize(
    ("name", "array", "problem"),
    [
        ("X", np.zeros((8, 8), np.float32), "task input X is no placeholder; there are A, B"),
        ("A", np.zeros((8, 7), np.float32), "task input A has shape"),
        ("A", np.zeros((8, 8), np.float64), "of float64; expected shape"),
    ],
)
def test_inputs_have_to_fit(name: str, array: np.ndarray, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        SearchTask(ComputeDAG(matmul()), TARGET, HARDWARE, "key", task_inputs={name: array})
