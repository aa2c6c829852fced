"""The learned models by name."""

from __future__ import annotations

from intarsia.autoschedule.cost_model.boosted_trees import BoostedTrees
from intarsia.autoschedule.cost_model.cost_model import CostModel
from intarsia.autoschedule.cost_model.learned_model import LearnedModel
from intarsia.autoschedule.cost_model.ridge import Ridge
from intarsia.autoschedule.features import FeatureOptions


def ridge_model(before: CostModel, warm_up: int = 100, options: FeatureOptions | None = None) -> LearnedModel:
    """Ridge regression: needs NumPy only.

    Args:
        before: Predicts until there are `warm_up` samples.
        warm_up: How many are enough.
        options: Which features.
    """
    return LearnedModel(Ridge(), before, warm_up, options=options or FeatureOptions())


def boosted_tree_model(
    before: CostModel, warm_up: int = 100, seed: int = 43, options: FeatureOptions | None = None
) -> LearnedModel:
    """Gradient-boosted trees: need the extra `tuning`.

    Args:
        before: Predicts until there are `warm_up` samples.
        warm_up: How many are enough.
        seed: Of the trees.
        options: Which features.

    Raises:
        UsageError: LightGBM is not installed.
    """
    return LearnedModel(BoostedTrees(seed=seed), before, warm_up, options=options or FeatureOptions())
