"""Scores of states without measuring them (seed ansor_minimum)."""

from intarsia.autoschedule.cost_model.boosted_trees import BoostedTrees
from intarsia.autoschedule.cost_model.cost_model import CostModel, Scores
from intarsia.autoschedule.cost_model.draft_model import DraftModel, draft_cycles
from intarsia.autoschedule.cost_model.learned_model import LearnedModel, Regressor
from intarsia.autoschedule.cost_model.models import (
    boosted_tree_model,
    ridge_model,
    usual_gpu_model,
    usual_model,
)
from intarsia.autoschedule.cost_model.random_model import RandomModel
from intarsia.autoschedule.cost_model.ridge import Ridge
from intarsia.autoschedule.cost_model.samples import Programs, Samples
from intarsia.autoschedule.cost_model.static_gpu_model import StaticGpuModel
from intarsia.autoschedule.cost_model.update_from_records import update_from_records

__all__ = [
    "BoostedTrees",
    "CostModel",
    "DraftModel",
    "LearnedModel",
    "Programs",
    "RandomModel",
    "Regressor",
    "Ridge",
    "Samples",
    "Scores",
    "StaticGpuModel",
    "boosted_tree_model",
    "draft_cycles",
    "ridge_model",
    "update_from_records",
    "usual_gpu_model",
    "usual_model",
]
