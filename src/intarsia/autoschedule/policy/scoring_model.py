"""The model that currently gives the scores of a cost model."""

from __future__ import annotations

from intarsia.autoschedule.cost_model import CostModel, LearnedModel


def scoring_model(model: CostModel) -> CostModel:
    """Return the model that gives a model's scores: while a learned one is not warm, its predecessor.

    A learned model that is not warm would compute features only to find programs that cannot be lowered.
    """
    while isinstance(model, LearnedModel) and not model.is_warm:
        model = model.before
    return model
