"""Features of random states: there are always some, and they are numbers."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.native_workloads import WORKLOADS
from tests.properties.random_histories import histories

from intarsia.autoschedule.cost_model import draft_cycles
from intarsia.autoschedule.features import FeatureOptions, Machine, feature_names, per_store_features
from intarsia.autoschedule.task import HardwareParams
from intarsia.native.dag import ComputeDAG
from intarsia.native.lowering import lower

DAGS = {name: ComputeDAG(make()) for name, make in WORKLOADS.items()}
MACHINE = Machine(32, 16, 32 * 1024, 512 * 1024, 2)
OPTIONS = FeatureOptions(machine=MACHINE)
NAMES = OPTIONS.names
KINDS = [place for place, name in enumerate(NAMES) if "type.k" in name]
SHARES = [
    NAMES.index(name) for name in ("machine_vector_fit", "machine_smooth_share", "machine_thread_balance")
]


@pytest.mark.quick_cases(7)
@pytest.mark.parametrize("name", sorted(DAGS))
@settings(max_examples=examples(6), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_every_state_has_features(name: str, data: st.DataObject) -> None:
    dag = DAGS[name]
    function = lower(dag, data.draw(histories(dag)))
    rows = per_store_features(function, HardwareParams(2), machine=MACHINE)
    assert rows.shape[0] >= 1
    assert rows.shape[1] == len(NAMES)
    assert np.isfinite(rows).all()
    assert (rows >= 0).all()
    assert set(np.unique(rows[:, KINDS])) <= {0.0, 1.0}
    assert (rows[:, SHARES] <= 1.0).all()
    assert rows.any(axis=1).all()
    assert np.array_equal(rows[:, : len(feature_names())], per_store_features(function, HardwareParams(2)))
    assert 0 < draft_cycles(function, MACHINE) < np.inf
