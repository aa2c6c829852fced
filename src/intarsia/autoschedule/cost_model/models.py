"""The learned models by name."""

from __future__ import annotations

from intarsia.autoschedule.cost_model.boosted_trees import BoostedTrees
from intarsia.autoschedule.cost_model.cost_model import CostModel
from intarsia.autoschedule.cost_model.draft_model import DraftModel
from intarsia.autoschedule.cost_model.learned_model import LearnedModel
from intarsia.autoschedule.cost_model.ridge import Ridge
from intarsia.autoschedule.cost_model.static_gpu_model import StaticGpuModel
from intarsia.autoschedule.features import FeatureOptions, Machine
from intarsia.native.gpu.static_cost import GpuFacts
from intarsia.support.errors import UsageError


def ridge_model(before: CostModel, warm_up: int = 100, options: FeatureOptions | None = None) -> LearnedModel:
    """Return a model by ridge regression, which needs NumPy only.

    Args:
        before: Model that predicts until there are `warm_up` samples.
        warm_up: Number of samples from which on the regressor predicts.
        options: Features that the model sees.
    """
    return LearnedModel(Ridge(), before, warm_up, options=options or FeatureOptions())


def boosted_tree_model(
    before: CostModel, warm_up: int = 100, seed: int = 43, options: FeatureOptions | None = None
) -> LearnedModel:
    """Return a model by gradient-boosted trees, which need the extra `tuning`.

    Args:
        before: Model that predicts until there are `warm_up` samples.
        warm_up: Number of samples from which on the regressor predicts.
        seed: Random seed of LightGBM.
        options: Features that the model sees.

    Raises:
        UsageError: LightGBM is not installed.
    """
    return LearnedModel(BoostedTrees(seed=seed), before, warm_up, options=options or FeatureOptions())


def usual_model(machine: Machine, seed: int = 43) -> LearnedModel:
    """Boosted trees if LightGBM is installed, else ridge regression; before either, the draft model.

    Args:
        machine: Vector width, registers, caches and threads of the machine.
        seed: Seed of the trees.
    """
    return _learned_model(DraftModel(machine), FeatureOptions(machine=machine), seed)


def usual_gpu_model(facts: GpuFacts, seed: int = 43) -> LearnedModel:
    """As `usual_model`, for a GPU; it ranks by the static cost before it has learned from measurements.

    Args:
        facts: Peaks of the GPU.
        seed: Seed of the trees.
    """
    return _learned_model(StaticGpuModel(facts), FeatureOptions(), seed)


def _learned_model(before: CostModel, features: FeatureOptions, seed: int) -> LearnedModel:
    try:
        return boosted_tree_model(before, seed=seed, options=features)
    except UsageError:
        return ridge_model(before, options=features)
