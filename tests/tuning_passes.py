"""Tuning passes on made-up costs: decisions are facts on the module, and a table says what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.ir_programs import relu, var

from intarsia.ir import Function, IRModule, structural_digest, with_module_fields
from intarsia.transform import ModulePass, PassContext, register_pass
from intarsia.tune import (
    Choice,
    Evaluation,
    Instruction,
    Trace,
    TuningContext,
    TuningPass,
    constraint,
    transformation,
)

Cost = Callable[[IRModule], float]


def program() -> IRModule:
    """Any."""
    x = var()
    return IRModule.from_expr(Function((x,), relu(x)))


def planted(mod: IRModule) -> float:
    """Alone each decision is best the other way: only together `on` and `NHWC` pay."""
    costs: dict[tuple[object, object], float] = {
        ("on", None): 12.0,
        ("off", None): 10.0,
        ("on", "NHWC"): 5.0,
        ("off", "NHWC"): 11.0,
        ("on", "NCHW"): 12.0,
        ("off", "NCHW"): 9.0,
    }
    return costs.get((mod.attrs.get("parallel"), mod.attrs.get("layout")), 10.0)


@transformation
def decided(mod: IRModule, what: str, value: str) -> IRModule:
    """Note a decision on the module."""
    return with_module_fields(mod, attrs=mod.attrs.updated(**{what: value}))


@constraint
def only_if(mod: IRModule, what: str, value: str) -> bool:
    """Whether that was decided."""
    return mod.attrs.get(what) == value


@dataclass
class CostTable:
    """An evaluator: equal modules are measured once.

    Attributes:
        cost: Function from a module to its cost.
        measured: Digests of what was measured, in order.
        modules: Modules that were evaluated, in order.
    """

    cost: Cost = lambda _: 1.0
    measured: list[str] = field(default_factory=list)
    modules: list[IRModule] = field(default_factory=list)

    def evaluate(self, candidates: Sequence[Trace]) -> list[Evaluation]:
        found = []
        for candidate in candidates:
            self.modules.append(candidate.out_mod)
            digest = structural_digest(candidate.out_mod)
            is_new = digest not in self.measured
            if is_new:
                self.measured.append(digest)
            cost = self.cost(candidate.out_mod)
            found.append(Evaluation(cost, "" if cost < float("inf") else "planned to fail", is_new))
        return found


@dataclass(frozen=True)
class Deciding(TuningPass):
    """Decides one fact, of several values."""

    what: str = "fact"
    values: tuple[str, ...] = ("0", "1")

    def instructions(self, trace: Trace, ctx: TuningContext) -> Sequence[Instruction]:
        choices = {value: Choice(decided, {"what": self.what, "value": value}) for value in self.values}
        return [Instruction(f"Decide {self.what}", choices)]


def parallel(*eval_passes: TuningPass) -> Deciding:
    """The seed's TuningParallelConv2dPass: two choices."""
    return Deciding(eval_passes, what="parallel", values=("on", "off"))


def layout(*eval_passes: TuningPass) -> Deciding:
    """The seed's TuningLayoutPass: three choices."""
    return Deciding(eval_passes, what="layout", values=("NCHW", "NHWC", "none"))


def mock(*eval_passes: TuningPass) -> Deciding:
    """The seed's MockTuningPass: five choices."""
    return Deciding(eval_passes, what="mock", values=tuple("abcde"))


@register_pass
@dataclass(frozen=True)
class NoteHeuristic(ModulePass, opt_level=0):
    """A heuristic pass."""

    value: str = "yes"
    among: tuple[str, ...] = ("yes", "no")

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return decided(mod, "heuristic", self.value)
