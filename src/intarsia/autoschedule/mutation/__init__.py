"""Small changes of programs (Ansor, section 5.1)."""

from intarsia.autoschedule.mutation.mutate import CPU_MUTATION_RULES, mutate
from intarsia.autoschedule.mutation.mutation_rule import MutationRule

__all__ = ["CPU_MUTATION_RULES", "MutationRule", "mutate"]
