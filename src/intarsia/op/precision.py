"""How each operator fares in 16-bit floating point.

Read the table below as the definition. A test checks that every operator of ONNX's default domain stands in
it exactly once. Operators of other domains keep float32.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from types import MappingProxyType

from intarsia.ir import DType, Op
from intarsia.op.opset import schema_of


class PrecisionKind(StrEnum):
    """What mixed precision does with an operator."""

    LOWER = "lower"
    """Heavy and safe: sums of products, which toolchains accumulate in float32. Worth casting the inputs."""
    FOLLOW = "follow"
    """As exact as its inputs: goes with them, but is not worth a cast."""
    KEEP = "keep"
    """Long sums, exponentials, powers, comparisons, and what is no arithmetic: stays in float32."""


_TABLE = {
    PrecisionKind.LOWER: "Conv ConvTranspose Einsum Gemm MatMul",
    PrecisionKind.FOLLOW: """
        Abs Add ArgMax ArgMin AveragePool BatchNormalization CenterCropPad Clip Compress Concat
        DepthToSpace Div Dropout Elu Erf Expand Flatten Gather GatherElements GatherND Gelu GlobalMaxPool
        HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Max MaxPool Min Mul Neg NonZero PRelu Pad
        ReduceMax ReduceMin Relu Reshape Resize ReverseSequence RotaryEmbedding Selu Shape Shrink Sigmoid
        Sign Size Slice Softsign SpaceToDepth Split Squeeze Sub Sum Swish Tanh ThresholdedRelu Tile TopK
        Transpose Trilu Unsqueeze Where
    """,
    PrecisionKind.KEEP: """
        Acos Acosh AffineGrid And Asin Asinh Atan Atanh Attention Bernoulli BitCast BitShift
        BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BlackmanWindow Cast CastLike Ceil Celu Col2Im
        ConcatFromSequence Constant ConstantOfShape ConvInteger Cos Cosh CumProd CumSum DFT DeformConv
        DequantizeLinear Det DynamicQuantizeLinear Equal Exp EyeLike Floor GRU GlobalAveragePool
        GlobalLpPool Greater GreaterOrEqual GridSample GroupNormalization HammingWindow HannWindow
        Hardmax If ImageDecoder InstanceNormalization LRN LSTM LayerNormalization Less LessOrEqual Log
        LogSoftmax Loop LpNormalization LpPool MatMulInteger MaxRoiPool MaxUnpool Mean
        MeanVarianceNormalization MelWeightMatrix Mish Mod Multinomial NegativeLogLikelihoodLoss
        NonMaxSuppression Not OneHot Optional OptionalGetElement OptionalHasElement Or Pow QLinearConv
        QLinearMatMul QuantizeLinear RMSNormalization RNN RandomNormal RandomNormalLike RandomUniform
        RandomUniformLike Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean
        ReduceProd ReduceSum ReduceSumSquare RegexFullMatch RoiAlign Round STFT Scan ScatterElements
        ScatterND SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert
        SequenceLength SequenceMap Sin Sinh Softmax SoftmaxCrossEntropyLoss Softplus SplitToSequence
        Sqrt StringConcat StringNormalizer StringSplit Tan TensorScatter TfIdfVectorizer Unique Xor
    """,
}

PRECISION_KINDS = MappingProxyType({name: kind for kind, names in _TABLE.items() for name in names.split()})
"""Kind by operator of ONNX's default domain."""


def precision_kind(op: Op) -> PrecisionKind:
    """What mixed precision does with an operator; KEEP for one that the table does not have."""
    return PrecisionKind.KEEP if op.domain else PRECISION_KINDS.get(op.name, PrecisionKind.KEEP)


@cache
def takes(name: str, position: int, dtype: DType) -> bool:
    """Whether an operator of ONNX's default domain accepts an element type for an argument.

    False where the schema names the type of the argument (Resize's scales are float32), so that it cannot
    change together with others.
    """
    schema = schema_of(name)
    if not schema.inputs:
        return False
    formal = schema.inputs[min(position, len(schema.inputs) - 1)]
    allowed = {item.type_param_str: item.allowed_type_strs for item in schema.type_constraints}
    spelled = {DType.FLOAT16: "tensor(float16)", DType.BFLOAT16: "tensor(bfloat16)"}.get(dtype)
    return spelled in allowed.get(formal.type_str, ())
