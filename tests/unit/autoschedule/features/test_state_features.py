"""Features of states, also of those that cannot be lowered."""

import numpy as np
from tests.native_workloads import matmul

from intarsia.autoschedule.features import (
    FeatureOptions,
    Machine,
    feature_names,
    per_store_features,
    state_features,
)
from intarsia.autoschedule.task import HardwareParams, SearchTask
from intarsia.native.dag import ComputeDAG
from intarsia.native.lowering import lower
from intarsia.target import Target

DAG = ComputeDAG(matmul())
TASK = SearchTask.of_dag(DAG, Target("cpu -toolchain=native"), HardwareParams(4))


def test_those_of_the_loop_function() -> None:
    state = DAG.init_state.split("C", "i", [4])
    assert np.array_equal(state_features(TASK, state), per_store_features(lower(DAG, state), TASK.hardware))


def test_a_state_that_cannot_be_lowered_has_zeros() -> None:
    state = DAG.init_state.split("C", "i", [None])
    rows = state_features(TASK, state)
    assert rows.shape == (1, len(feature_names()))
    assert not rows.any()


def test_the_features_of_a_machine_are_a_choice() -> None:
    options = FeatureOptions(machine=Machine(32, 16, 32768, 524288, 4))
    rows = state_features(TASK, DAG.init_state, options)
    assert rows.shape == (1, len(options.names))
    assert len(options.names) == 174
