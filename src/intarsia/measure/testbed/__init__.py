"""Where candidates are built and run: on this machine, or wherever an executor puts them.

testbed         Testbed, what the measurer asks for
local           LocalTestbed: worker processes of this machine
run_folder      the folder of one run; that of a killed run is removed by the next one
remote          RemoteTestbed: any `concurrent.futures.Executor`
transport       what is special about an executor: how workloads travel, what its failures mean
parcel          a workload on its way to another machine
station         what runs in the processes of such an executor
station_session what one remote testbed has there: local testbeds, one for each thread that measures
dask_cluster    a Dask cluster as an executor, whose workers tell their fingerprints
cluster_workers who is in the cluster, and who measures as this machine does
"""

from intarsia.measure.testbed.local import LocalTestbed, TestbedLimits
from intarsia.measure.testbed.testbed import Measured, Testbed

__all__ = ["LocalTestbed", "Measured", "Testbed", "TestbedLimits"]
