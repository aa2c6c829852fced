"""Which cores toolchains use: those of the process, whatever OMP_NUM_THREADS says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.partitioned_programs import SIZE, unpartitioned
from tests.process_threads import pinned, task_names

from intarsia.build import build
from intarsia.passes import partition_whole
from intarsia.target import Target
from intarsia.target.cpu import usable_cores
from intarsia.toolchain import usable_toolchains
from intarsia.toolchain.this_host import this_host

USABLE = {toolchain.name for toolchain in usable_toolchains()}
COUNTING = """
import json
import numpy as np
from intarsia.build import build
from intarsia.passes import partition_whole
from intarsia.target import Host, Target
from intarsia.toolchain import usable_toolchains
from tests.partitioned_programs import SIZE, unpartitioned

counts = {"host": Host.detect().cores}
usable = {toolchain.name for toolchain in usable_toolchains()}
if "native" in usable:
    from intarsia.toolchain.native.plan import planned_region
    with build(partition_whole(unpartitioned(), Target("cpu -toolchain=native"))) as executable:
        counts["native"] = planned_region(executable.kernels[0].source).threads
if "onnxruntime" in usable:
    from intarsia.toolchain.onnxruntime.session import session_options
    counts["onnxruntime"] = session_options(Target("cpu -toolchain=onnxruntime")).intra_op_num_threads
if "openvino" in usable:
    from intarsia.toolchain.openvino.properties import model_options
    counts["openvino"] = int(model_options(Target("cpu -toolchain=openvino"))["INFERENCE_NUM_THREADS"])
if "torch" in usable:
    import torch
    with build(partition_whole(unpartitioned(), Target("cpu -toolchain=torch"))) as executable:
        executable(np.ones((SIZE, SIZE), np.float32))
    counts["torch"] = torch.get_num_threads()
print(json.dumps(counts))
"""


@pytest.mark.slow
@pytest.mark.parametrize("difference", [-1, 1])
def test_the_environment_does_not_say_how_many_threads_there_are(difference: int) -> None:
    cores = usable_cores(Path("/"))
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = dict.fromkeys(names, str(max(1, cores + difference)))
    command = [sys.executable, "-c", COUNTING]
    found = subprocess.run(command, env=os.environ | environment, capture_output=True, check=True, text=True)
    counts = json.loads(found.stdout)
    assert set(counts.values()) == {cores}
    assert set(counts) == {"host", *USABLE} - {"reference"}


def test_the_fingerprint_follows_the_cores_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    before = this_host()
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0}, raising=False)
    assert this_host().cores == 1
    assert this_host().toolchains == before.toolchains
    monkeypatch.undo()
    assert this_host() == before


@pytest.mark.skipif("onnxruntime" not in USABLE, reason="onnxruntime is not installed")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core only")
def test_threads_of_onnxruntime_stay_where_taskset_has_put_them() -> None:
    given, core = np.ones((SIZE, SIZE), np.float32), min(os.sched_getaffinity(0))
    before = task_names().keys()
    with build(
        partition_whole(unpartitioned(), Target("cpu -toolchain=onnxruntime -threads=2"))
    ) as executable:
        executable(given)
        tasks = task_names().keys()
        with pinned(tasks, core):
            for _ in range(20):
                executable(given)
            assert tasks - before
            assert all(os.sched_getaffinity(task) == {core} for task in tasks - before)
