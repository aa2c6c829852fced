"""TOpPattern: how each operator behaves in fusion (seed collage_rfc; the kinds are TVM's, in its order).

Read the table below as the definition. A test checks that every operator of ONNX's default domain stands in
it exactly once. Operators of other domains are opaque.
"""

from __future__ import annotations

from enum import IntEnum
from types import MappingProxyType

from intarsia.ir import Op


class OpPatternKind(IntEnum):
    """Fusion kinds, from the most to the least fusable."""

    ELEMWISE = 0
    """One output element from the element at the same position of inputs of the same shape."""
    BROADCAST = 1
    """As elementwise, but some input may be stretched along axes."""
    INJECTIVE = 2
    """Each output element comes from one input element, at a computed position."""
    COMM_REDUCE = 3
    """Elements along some axes are combined by a commutative operation."""
    OUT_ELEMWISE_FUSABLE = 4
    """A heavy operator whose output can be post-processed in registers: convolution, matrix product."""
    TUPLE = 7
    """A tuple of values."""
    OPAQUE = 8
    """Nothing can be fused with it."""


_TABLE = {
    OpPatternKind.ELEMWISE: """
        Abs Acos Acosh Asin Asinh Atan Atanh BitCast BitwiseNot Cast CastLike Ceil Celu Clip Cos Cosh
        Dropout Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Log Mish Neg Not
        Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh
        ThresholdedRelu
    """,
    OpPatternKind.BROADCAST: """
        Add And BatchNormalization BitShift BitwiseAnd BitwiseOr BitwiseXor DequantizeLinear Div Equal
        Expand Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or PRelu Pow QuantizeLinear Sub
        Sum Where Xor
    """,
    OpPatternKind.INJECTIVE: """
        CenterCropPad Concat Constant ConstantOfShape DepthToSpace EyeLike Flatten Gather GatherElements
        GatherND OneHot Pad Range Reshape ReverseSequence RotaryEmbedding Slice SpaceToDepth Split Squeeze
        Tile Transpose Trilu Unsqueeze
    """,
    OpPatternKind.COMM_REDUCE: """
        ArgMax ArgMin GlobalAveragePool GlobalLpPool GlobalMaxPool ReduceL1 ReduceL2 ReduceLogSum
        ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare
    """,
    OpPatternKind.OUT_ELEMWISE_FUSABLE: """
        AveragePool Conv ConvInteger ConvTranspose DeformConv Einsum Gemm GridSample LRN LpPool MatMul
        MatMulInteger MaxPool QLinearConv QLinearMatMul Resize
    """,
    OpPatternKind.OPAQUE: """
        AffineGrid Attention Bernoulli BlackmanWindow Col2Im Compress ConcatFromSequence CumProd CumSum DFT
        Det DynamicQuantizeLinear GRU GroupNormalization HammingWindow HannWindow Hardmax If ImageDecoder
        InstanceNormalization LSTM LayerNormalization LogSoftmax Loop LpNormalization MaxRoiPool MaxUnpool
        MeanVarianceNormalization MelWeightMatrix Multinomial NegativeLogLikelihoodLoss NonMaxSuppression
        NonZero Optional OptionalGetElement OptionalHasElement RMSNormalization RNN RandomNormal
        RandomNormalLike RandomUniform RandomUniformLike RegexFullMatch RoiAlign STFT Scan ScatterElements
        ScatterND SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength
        SequenceMap Shape Size Softmax SoftmaxCrossEntropyLoss SplitToSequence StringConcat StringNormalizer
        StringSplit TensorScatter TfIdfVectorizer TopK Unique
    """,
}

TOP_PATTERN = MappingProxyType({name: kind for kind, names in _TABLE.items() for name in names.split()})
"""Fusion kind by operator of ONNX's default domain."""

_INTARSIA = MappingProxyType(
    {
        "on_device": OpPatternKind.OPAQUE,
        "device_copy": OpPatternKind.OPAQUE,
        "layout_transform": OpPatternKind.INJECTIVE,
        "counted_boxes": OpPatternKind.OPAQUE,
        "counted_indices": OpPatternKind.OPAQUE,
        "tree_ensemble": OpPatternKind.OPAQUE,
    }
)


def op_pattern(op: Op) -> OpPatternKind:
    """The fusion kind of an operator; OPAQUE for one that the tables do not have."""
    match op.domain:
        case "":
            return TOP_PATTERN.get(op.name, OpPatternKind.OPAQUE)
        case "intarsia":
            return _INTARSIA.get(op.name, OpPatternKind.OPAQUE)
        case _:
            return OpPatternKind.OPAQUE
