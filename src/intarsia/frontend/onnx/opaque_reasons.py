"""Why operators of a model stay opaque, in sentences for the user."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from intarsia.op.opaque import declared_toolchains, is_opaque_domain

if TYPE_CHECKING:
    from onnx import NodeProto


@dataclass(slots=True)
class OpaqueReasons:
    """Counts the nodes that stay opaque, by operator and reason."""

    _counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def record(self, node: NodeProto, reason: str) -> None:
        """Record a node that stays as it is; ONNX's operators and registered ones are not opaque."""
        if is_opaque_domain(node.domain):
            self._counts[node.domain, node.op_type, reason] += 1

    def notes(self) -> tuple[str, ...]:
        """A sentence for each operator and reason: how many nodes run where, and why."""
        return tuple(
            f"{domain}::{name} ({count} {'node' if count == 1 else 'nodes'}) runs on "
            f"{' and '.join(sorted(declared_toolchains(domain, name)))} only: {reason}"
            for (domain, name, reason), count in sorted(self._counts.items())
        )
