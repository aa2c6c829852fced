"""Who answers for a model."""

from __future__ import annotations

from intarsia.autoschedule.cost_model import CostModel, LearnedModel


def speaking(model: CostModel) -> CostModel:
    """The model whose scores a model gives: while a learned one is not warm, the one before it.

    Asked itself, it would make features only to see which programs cannot be lowered.
    """
    while isinstance(model, LearnedModel) and not model.is_warm:
        model = model.before
    return model
