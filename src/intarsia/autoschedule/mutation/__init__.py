"""Mutations of programs (Ansor, section 5.1)."""

from intarsia.autoschedule.mutation.mutate import (
    CPU_MUTATION_RULES,
    GPU_MUTATION_RULES,
    MutationRule,
    mutate,
)

__all__ = ["CPU_MUTATION_RULES", "GPU_MUTATION_RULES", "MutationRule", "mutate"]
