"""Testbeds, which build and run candidates: on this machine, or in the processes of an executor.

testbed         Testbed, the interface for the measurer
local           LocalTestbed: worker processes of this machine
run_folder      the folder of one run; that of a killed run is removed by the next one
remote          RemoteTestbed: any `concurrent.futures.Executor`
transport       properties of an executor: transfer of workloads, meaning of failures
parcel          a workload on its way to another machine
station         what runs in the processes of such an executor
station_session what one remote testbed has there: local testbeds, one for each thread that measures
dask_cluster    a Dask cluster as an executor; workers report their fingerprints
cluster_workers workers of the cluster, and those on machines like this one
"""

from intarsia.measure.testbed.limits import TestbedLimits
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.measure.testbed.testbed import EarlyBuilder, KernelTestbed, LendingTestbed, Measured, Testbed

__all__ = [
    "EarlyBuilder",
    "KernelTestbed",
    "LendingTestbed",
    "LocalTestbed",
    "Measured",
    "Testbed",
    "TestbedLimits",
]
