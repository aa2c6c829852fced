"""What a pass declares to the pass manager."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from intarsia.support.errors import UsageError
from intarsia.transform.name_list import name_list
from intarsia.transform.program_feature import ProgramFeature


@dataclass(frozen=True, slots=True)
class PassInfo:
    """Name, level and constraints of a pass (seed pass_infra, PassInfo; the last six are ours).

    Attributes:
        name: Registered name, by which contexts, sequences and traces refer to the pass.
        opt_level: Lowest `PassContext.opt_level` at which a `Sequential` runs the pass.
        required: Passes that a `Sequential` runs just before this one, whatever the context says of them.
        after: Passes that must stand earlier in the sequence; one above the context's level may be missing
            when the sequence runs.
        directly_after: The pass that must stand just before this one, or ""; the same holds for its level.
        directly_before: The pass that must stand just after this one, or ""; the same holds for its level.
        conflicts: Passes that must not stand in one sequence with this one.
        handles: Language features that the pass handles; None is every feature, present and future.
        places_devices: Whether all it builds and moves has the right virtual device. After a pass that does
            not say so, the gaps are filled that it has left in a planned program (`transform.completion`).

    Raises:
        UsageError: A fact of the wrong type, such as one name where a list of names is needed.
    """

    name: str
    opt_level: int = 0
    required: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    directly_after: str = ""
    directly_before: str = ""
    conflicts: tuple[str, ...] = ()
    handles: frozenset[ProgramFeature] | None = None
    places_devices: bool = False

    def __post_init__(self) -> None:
        """Make tuples of lists, and check what people have given."""
        if not isinstance(self.opt_level, int):
            raise UsageError(
                f"pass {self.name} has the opt_level {self.opt_level!r}, expected a whole number"
            )
        for fact in ("required", "after", "conflicts"):
            names = name_list(f"{fact!r} of pass {self.name}", getattr(self, fact))
            object.__setattr__(self, fact, names)
        for fact in ("directly_after", "directly_before"):
            if not isinstance(getattr(self, fact), str):
                raise UsageError(
                    f"{fact!r} of pass {self.name} is {getattr(self, fact)!r}, expected the name of one pass"
                )
        if self.handles is not None:
            object.__setattr__(self, "handles", _features(self.name, self.handles))
        if not isinstance(self.places_devices, bool):
            raise UsageError(
                f"'places_devices' of pass {self.name} is {self.places_devices!r}, expected True or False"
            )

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


def _features(pass_name: str, features: Iterable[ProgramFeature]) -> frozenset[ProgramFeature]:
    given: tuple[object, ...] = (str(features),) if isinstance(features, str) else tuple(features)
    for item in given:
        if not isinstance(item, ProgramFeature):
            features_text = ", ".join(f"ProgramFeature.{feature.name}" for feature in ProgramFeature)
            raise UsageError(
                f"'handles' of pass {pass_name} has {item!r}, expected a list of ProgramFeature",
                help=f"there are {features_text}",
            )
    return frozenset(features)
