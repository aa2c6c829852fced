"""Random programs of sketches: tile sizes, compute locations and annotations (Ansor, section 4.2)."""

from intarsia.autoschedule.population.completed import completed, has_nested_parallel, with_bounds
from intarsia.autoschedule.population.factorizations import factorizations
from intarsia.autoschedule.population.sample_initial_population import (
    CPU_POPULATION_RULES,
    PopulationRule,
    sample_initial_population,
    sample_program,
)

__all__ = [
    "CPU_POPULATION_RULES",
    "PopulationRule",
    "completed",
    "factorizations",
    "has_nested_parallel",
    "sample_initial_population",
    "sample_program",
    "with_bounds",
]
