"""The origin of an executable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from intarsia.runtime.kernel import Array


@dataclass(frozen=True, slots=True, eq=False)
class Provenance:
    """The program, software and machine that an executable was built with; saved in its artifact.

    Attributes:
        program: Text of the program that was built.
        program_constants: The arrays that the text refers to as `meta[Constant][i]`, shared, never copied.
        model: Name of the model, or the empty string.
        host: Facts of the building machine as plain values (`Host.to_json()`).
        isa: Instruction sets without which the program cannot run, not even after a rebuild.
        created_by: Name and version of the software ("intarsia 0.1.0").
    """

    program: str = ""
    program_constants: tuple[Array, ...] = ()
    model: str = ""
    host: Mapping[str, object] = field(default_factory=dict)
    isa: tuple[str, ...] = ()
    created_by: str = ""
