"""Models of one family: what was decided for one takes part in the contest of the next.

Networks come in families: deeper ones, for longer sequences or larger images, with other weights. Their
layers are the same, but for how often they occur. So decisions that made one of them fast are likely to be
good for the next, and are tried for it before anything is searched.
"""

from __future__ import annotations

from typing import Final

from intarsia.collage.placement.plan import Plan
from intarsia.driver.baselines import whole_name
from intarsia.driver.entrant import Entrant
from intarsia.driver.kept_run import KeptRun
from intarsia.ir import Call, Constant, IRModule, Op, post_order
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.database import Database
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.support.digest import digest_text
from intarsia.support.errors import IntarsiaError
from intarsia.tune.tuned_candidate import Decision, tuned_candidate

LEAST_LIKENESS: Final = 0.5
"""Models with fewer layers in common are no relatives."""

_MOST_MODELS: Final = 256
"""So many of the newest runs are looked at."""


def layers_of(mod: IRModule) -> frozenset[str]:
    """Digests of what is computed with weights: operators, attributes, and the shapes of weights.

    Shapes of what flows between them are left out: the same network for other images has the same layers.
    """
    calls = (expr for expr in post_order(*mod.graph_functions.values()) if isinstance(expr, Call))
    return frozenset(digest for call in calls if (digest := _layer(call)) is not None)


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of all their layers that both have, 0 to 1."""
    return len(one & other) / len(one | other) if one | other else 0.0


def nearest_plan(database: Database, asked: str, mod: IRModule) -> Plan | None:
    """The plan that won for the most similar model; of equally similar ones the newest.

    Args:
        database: Has finished runs.
        asked: By `family_question_digest`.
        mod: The model that is tuned.
    """
    layers = layers_of(mod)
    known = database.find_models(asked, _MOST_MODELS)
    near = [(likeness(layers, frozenset(each.layers.split())), each.run) for each in known]
    best, key = max(near, key=lambda each: each[0], default=(0.0, ""))
    record = database.find_run(key) if best >= LEAST_LIKENESS else None
    try:
        return None if record is None else KeptRun.from_text(record.outcome).plan
    except ValueError:  # of another version
        return None


def relative_entrant(workload: Workload, plan: Plan) -> Entrant | None:
    """What was decided for a relative, as a candidate; None if nothing of it can be decided here.

    Decisions that do not fit this model are left out. Which toolchains run parts is not taken over: parts
    are found by what they compute, and their measurements are shared anyway.

    Args:
        workload: The model that is tuned.
        plan: The relative's.
    """
    if plan.whole is None:
        return None
    mod, decisions = workload.module, list[Decision]()
    for decision in plan.decisions:
        try:
            after = decision[1].apply(mod)
        except IntarsiaError:  # it names a place that this model lacks
            continue
        if after is not mod:
            mod = after
            decisions.append(decision)
    if not decisions:
        return None
    candidate = tuned_candidate(tuple(decisions), WHOLE)
    name = f"{whole_name(plan.whole)} as for {plan.model or 'a relative'}"
    return Entrant(name, MeasureInput(workload, plan.whole, candidate))


def _layer(call: Call) -> str | None:
    weights = [arg for arg in call.args if isinstance(arg, Constant) and arg.data.size > 1]
    if not isinstance(call.op, Op) or not weights:
        return None
    attributes = sorted((name, repr(value)) for name, value in call.attrs.items())
    shapes = [(str(weight.data.dtype), weight.data.shape) for weight in weights]
    return digest_text((str(call.op), repr(attributes), repr(shapes)))[:16]
