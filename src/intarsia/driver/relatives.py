"""Models of one family: the plan of one is a candidate for the next.

Networks come in families: deeper ones, ones for longer sequences or larger images, ones with other weights.
Their
layers are the same, but occur more or less often. So decisions that made one of them fast are likely to be
good for the next, and are tried for it before anything is searched.
"""

from __future__ import annotations

from typing import Final

from intarsia.collage.placement.plan import Plan
from intarsia.driver.baselines import whole_name
from intarsia.driver.kept_run import KeptRun
from intarsia.ir import Call, Constant, IRModule, Op, post_order
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.database import Database
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.support.digest import digest_text
from intarsia.support.errors import IntarsiaError
from intarsia.tune.contest.entrant import Entrant
from intarsia.tune.tuned_candidate import Decision, tuned_candidate

LEAST_LIKENESS: Final = 0.5
"""Minimum Jaccard similarity of the layers of relatives."""

_MOST_MODELS: Final = 256
"""Maximum number of runs, newest first, that are compared."""


def layers_of(mod: IRModule) -> frozenset[str]:
    """Return the digests of all layers with weights: operator, attributes, and weight shapes.

    Shapes of activations are left out: the same network for other image sizes has the same layers.
    """
    calls = (expr for expr in post_order(*mod.graph_functions.values()) if isinstance(expr, Call))
    return frozenset(digest for call in calls if (digest := _layer(call)) is not None)


def likeness(first: frozenset[str], second: frozenset[str]) -> float:
    """Return the Jaccard similarity of two sets of layers, 0 to 1."""
    return len(first & second) / len(first | second) if first | second else 0.0


def nearest_plan(database: Database, question: str, mod: IRModule) -> Plan | None:
    """Return the winning plan of the most similar model; of equally similar ones the newest.

    Args:
        database: Database with finished runs.
        question: Digest of the options, by `family_question_digest`.
        mod: Model to tune.
    """
    layers = layers_of(mod)
    models = database.find_models(question, _MOST_MODELS)
    similarities = [(likeness(layers, frozenset(model.layers.split())), model.run) for model in models]
    best, key = max(similarities, key=lambda model: model[0], default=(0.0, ""))
    record = database.find_run(key) if best >= LEAST_LIKENESS else None
    try:
        return None if record is None else KeptRun.from_text(record.outcome).plan
    except ValueError:  # of another version
        return None


def relative_entrant(workload: Workload, plan: Plan) -> Entrant | None:
    """Return the decisions of a relative's plan as an entrant; None if none of them applies here.

    Decisions that do not fit this model are dropped. Partitions are not taken over: they
    are identified by what they compute, so their measurements are shared anyway.

    Args:
        workload: Model to tune.
        plan: Plan of the relative.
    """
    if plan.whole is None:
        return None
    mod, decisions = workload.module, list[Decision]()
    for decision in plan.decisions:
        try:
            after = decision[1].apply(mod)
        except IntarsiaError:  # it refers to an expression that this model lacks
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
