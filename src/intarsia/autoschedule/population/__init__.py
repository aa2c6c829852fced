"""Random programs of sketches: tile sizes, compute locations and annotations (Ansor, section 4.2)."""

from intarsia.autoschedule.population.factorizations import factorizations
from intarsia.autoschedule.population.replay import has_nested_parallel, replay_program, with_bounds
from intarsia.autoschedule.population.sample_initial_population import (
    CPU_POPULATION_RULES,
    GPU_POPULATION_RULES,
    PopulationRule,
    sample_initial_population,
    sample_program,
)

__all__ = [
    "CPU_POPULATION_RULES",
    "GPU_POPULATION_RULES",
    "PopulationRule",
    "factorizations",
    "has_nested_parallel",
    "replay_program",
    "sample_initial_population",
    "sample_program",
    "with_bounds",
]
