"""What the pass manager knows of a pass without running it."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.transform.program_feature import ProgramFeature


@dataclass(frozen=True, slots=True)
class PassInfo:
    """Name, level and constraints of a pass (seed pass_infra, PassInfo; the last five are ours).

    Attributes:
        name: Registered name, by which contexts, sequences and traces refer to the pass.
        opt_level: Lowest `PassContext.opt_level` at which a `Sequential` runs the pass.
        required: Passes that a `Sequential` runs just before this one, whatever the context says of them.
        after: Passes that must stand earlier in the sequence.
        directly_after: The pass that must stand just before this one, or "".
        directly_before: The pass that must stand just after this one, or "".
        conflicts: Passes that must not stand in one sequence with this one.
        handles: Language features that the pass handles; None is every feature, present and future.
    """

    name: str
    opt_level: int = 0
    required: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    directly_after: str = ""
    directly_before: str = ""
    conflicts: tuple[str, ...] = ()
    handles: frozenset[ProgramFeature] | None = None

    @property
    def is_constrained(self) -> bool:
        """Whether the order of a sequence can be wrong for this pass."""
        return bool(
            self.required or self.after or self.directly_after or self.directly_before or self.conflicts
        )

    def __str__(self) -> str:
        """`FoldConstant(opt_level=2, required=[InferType])`."""
        required = f", required=[{', '.join(self.required)}]" if self.required else ""
        return f"{self.name}(opt_level={self.opt_level}{required})"
