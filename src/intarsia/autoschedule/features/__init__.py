"""Features of loop functions for cost models: a row per buffer that is written (seed ansor_minimum)."""

from intarsia.autoschedule.features.feature_names import MAX_BUFFERS, feature_names
from intarsia.autoschedule.features.feature_table import feature_table
from intarsia.autoschedule.features.machine import Machine
from intarsia.autoschedule.features.per_store import per_store_features
from intarsia.autoschedule.features.state_features import FeatureOptions, is_failed, state_features

__all__ = [
    "MAX_BUFFERS",
    "FeatureOptions",
    "Machine",
    "feature_names",
    "feature_table",
    "is_failed",
    "per_store_features",
    "state_features",
]
