"""Which operators compute item by item: the rule for each that has one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from intarsia.ir import Op
from intarsia.op.operator_definition import definition_of
from intarsia.op.operator_facts import LayoutKind
from intarsia.op.operator_table import facts_of
from intarsia.op.opset import INTARSIA_DOMAIN, ML_DOMAIN
from intarsia.op.token_append_op import APPENDED_TOKENS
from intarsia.op.token_attention_op import ATTENTION_OF_TOKENS
from intarsia.op.token_filter_op import FILTER_OF_TOKENS
from intarsia.op.token_pool_op import POOL_OF_TOKENS
from intarsia.op.token_positions_op import COUNTED_POSITIONS
from intarsia.op.token_window_op import WINDOW_OF_TOKENS
from intarsia.passes.batches import computing_items, moving_items
from intarsia.passes.batches.item_axes import ItemRule


def item_rule(op: Op) -> ItemRule | None:
    """Return the rule for an operator; None if it mixes items, or nothing is known of it."""
    if op.domain == ML_DOMAIN:
        return _OF_ML.get(op.name)
    if op.domain == INTARSIA_DOMAIN and op.name in _AMONG_TOKENS:
        return _AMONG_TOKENS[op.name]
    if op.domain:
        definition = definition_of(op.domain, op.name)
        return None if definition is None or not definition.batched else computing_items.rows
    return _BY_NAME.get(op.name) or _BY_LAYOUT.get(facts_of(op).layout)


_BY_LAYOUT: Final[Mapping[LayoutKind, ItemRule]] = MappingProxyType(
    {
        LayoutKind.ELEMENTWISE: computing_items.aligned,
        LayoutKind.SAME_AXES: computing_items.same_axes,
        LayoutKind.IMAGE: computing_items.image,
        LayoutKind.LAST_AXIS: computing_items.along_axis_of(-1),
        LayoutKind.FIRST_AXIS: computing_items.along_axis_of(0),
        LayoutKind.POSITION: computing_items.position,
        LayoutKind.REDUCTION: computing_items.reduction,
        LayoutKind.CUMULATION: computing_items.cumulation,
        LayoutKind.QUANTIZATION: computing_items.quantization,
        LayoutKind.PAD: moving_items.padded,
        LayoutKind.RESIZE: moving_items.resized,
        LayoutKind.SLICE: moving_items.sliced,
        LayoutKind.SQUEEZE: moving_items.squeezed,
    }
)
_BY_NAME: Final[Mapping[str, ItemRule]] = MappingProxyType(
    {
        "Attention": computing_items.attention,
        "BatchNormalization": computing_items.batch_normalization,
        "Concat": moving_items.concatenation,
        "ConstantOfShape": moving_items.constant_of_shape,
        "ConvInteger": computing_items.image,
        "Expand": moving_items.expanded,
        "Flatten": moving_items.reshaped,
        "GRU": computing_items.recurrent,
        "Gather": moving_items.gathered,
        "GatherElements": moving_items.gathered_elements,
        "GatherND": moving_items.gathered_tuples,
        "Gemm": computing_items.gemm,
        "GridSample": computing_items.grid_sample,
        "LSTM": computing_items.recurrent,
        "LayerNormalization": computing_items.normalization,
        "MatMul": computing_items.product_of(0, 1),
        "MatMulInteger": computing_items.product_of(0, 1),
        "MaxPool": computing_items.max_pool,
        "OneHot": moving_items.one_hot,
        "QLinearConv": computing_items.image,
        "QLinearMatMul": computing_items.product_of(0, 3),
        "RMSNormalization": computing_items.normalization,
        "RNN": computing_items.recurrent,
        "Reshape": moving_items.reshaped,
        "RotaryEmbedding": computing_items.rotary_embedding,
        "ScatterElements": moving_items.gathered_elements,
        "Tile": moving_items.tiled,
        "Transpose": moving_items.transposed,
        "Trilu": moving_items.trilu,
        "Unsqueeze": moving_items.unsqueezed,
    }
)
"""Operators of which `LayoutKind` does not say enough."""
_AMONG_TOKENS: Final[Mapping[str, ItemRule]] = MappingProxyType(
    {
        APPENDED_TOKENS: computing_items.token_append,
        ATTENTION_OF_TOKENS: computing_items.token_attention,
        COUNTED_POSITIONS: computing_items.token_positions,
        POOL_OF_TOKENS: computing_items.token_pool,
        FILTER_OF_TOKENS: computing_items.token_window,
        WINDOW_OF_TOKENS: computing_items.token_window,
    }
)
"""Operators among the tokens of texts."""
_OF_ML: Final[Mapping[str, ItemRule]] = MappingProxyType(
    {
        "ArrayFeatureExtractor": moving_items.feature_extractor,
        "FeatureVectorizer": moving_items.side_by_side,
        "LabelEncoder": computing_items.same_axes,
        "OneHotEncoder": computing_items.same_axes,
        **dict.fromkeys(
            (
                "Binarizer",
                "Imputer",
                "LinearClassifier",
                "LinearRegressor",
                "Normalizer",
                "SVMClassifier",
                "SVMRegressor",
                "Scaler",
                "TreeEnsemble",
                "TreeEnsembleClassifier",
                "TreeEnsembleRegressor",
            ),
            computing_items.rows,
        ),
    }
)
"""Operators of ai.onnx.ml: most compute each row of their input by itself."""
