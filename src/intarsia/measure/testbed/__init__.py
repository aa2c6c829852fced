"""Where candidates are built and run: on this machine, or wherever an executor puts them.

testbed         Testbed, what the measurer asks for
local           LocalTestbed: worker processes of this machine
run_folder      the folder of one run; that of a killed run is removed by the next one
remote          RemoteTestbed: any `concurrent.futures.Executor`
station         what runs in the processes of such an executor: a local testbed each
parcel          a workload on its way to another machine
dask_cluster    a Dask cluster as an executor, whose workers tell their fingerprints
"""

from intarsia.measure.testbed.local import LocalTestbed
from intarsia.measure.testbed.testbed import Measured, Testbed

__all__ = ["LocalTestbed", "Measured", "Testbed"]
