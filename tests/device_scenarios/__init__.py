"""Annotated programs and what planning makes of them, for tests of planning and of running (reference C.5).

In the texts `@CPU` is device 0 of the cpu and `@GPU` device 0 of the mock device, which is the default; `f32`
is a matrix of 2 by 3 numbers. Types are left out of the planned program.

Of the reference's scenarios these have no counterpart: alloc_storage and alloc_tensor (memory is given out by
the runtime), references and ADTs (the language has none), lowered (build lowers what is planned, never the
other way round), left_add_on_cpu_via_copy_as_map (devices are no attributes, which could be spelled in two
ways); the deep chain is in tests/properties.
"""

from tests.device_scenarios.borders import BORDERS
from tests.device_scenarios.control_flow import CONTROL_FLOW
from tests.device_scenarios.networks import NETWORKS
from tests.device_scenarios.places import PLACES
from tests.device_scenarios.scenario import PLANNING, Scenario, annotated, shown

SCENARIOS = (*BORDERS, *NETWORKS, *CONTROL_FLOW, *PLACES)

__all__ = ["PLANNING", "SCENARIOS", "Scenario", "annotated", "shown"]
