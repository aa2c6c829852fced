"""The table of operators: one row for each of ONNX's default domain at the pinned opset, and each of ours.

Read the tables below as the definition. The columns are the fields of `OperatorFacts`. `test_operator_table`
checks that every operator has one row, and each column against the schemas, node cases or code that show it.

To add an operator: a row here, its compute rule in `native/te/operators`, its test (CONTRIBUTING.md).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import MappingProxyType

from intarsia.ir import Op
from intarsia.op.operator_definition import definition_of
from intarsia.op.operator_facts import (
    LayoutKind,
    OperatorFacts,
    OperatorTrait,
    OpPatternKind,
    PrecisionKind,
    SumKind,
)
from intarsia.op.opset import INTARSIA_DOMAIN, unknown_operator

_row = OperatorFacts

ELEMWISE = OpPatternKind.ELEMWISE
BROADCAST = OpPatternKind.BROADCAST
INJECTIVE = OpPatternKind.INJECTIVE
COMM_REDUCE = OpPatternKind.COMM_REDUCE
OUT_FUSABLE = OpPatternKind.OUT_ELEMWISE_FUSABLE
OPAQUE = OpPatternKind.OPAQUE

LOWER, FOLLOW, KEEP = PrecisionKind.LOWER, PrecisionKind.FOLLOW, PrecisionKind.KEEP

NO_RULE = LayoutKind.NO_RULE
ELEMENTWISE = LayoutKind.ELEMENTWISE
IMAGE = LayoutKind.IMAGE
SAME_AXES = LayoutKind.SAME_AXES
LAST_AXIS = LayoutKind.LAST_AXIS
FIRST_AXIS = LayoutKind.FIRST_AXIS
POSITION = LayoutKind.POSITION
REDUCTION = LayoutKind.REDUCTION
CUMULATION = LayoutKind.CUMULATION
QUANTIZATION = LayoutKind.QUANTIZATION
PAD = LayoutKind.PAD
RESIZE = LayoutKind.RESIZE
SLICE = LayoutKind.SLICE
SQUEEZE = LayoutKind.SQUEEZE

NO_SUM = SumKind.NO_SUM
REDUCED = SumKind.REDUCED
FILTER = SumKind.FILTER
QUANTIZED_FILTER = SumKind.QUANTIZED_FILTER
TRANSPOSED_FILTER = SumKind.TRANSPOSED_FILTER
INNER = SumKind.INNER
GEMM = SumKind.GEMM
RECURRENT = SumKind.RECURRENT
WINDOW = SumKind.WINDOW
LARGEST_AXIS = SumKind.LARGEST_AXIS
PER_ITEM = SumKind.PER_ITEM

PLAIN = OperatorTrait.PLAIN
KNOWN = OperatorTrait.KNOWN
SIZED = OperatorTrait.SIZED
FLOAT_SIZES = OperatorTrait.FLOAT_SIZES
READS_SHAPE = OperatorTrait.READS_SHAPE
PRODUCT = OperatorTrait.PRODUCT
WEIGHTED = OperatorTrait.WEIGHTED
COMMUTATIVE = OperatorTrait.COMMUTATIVE
RANDOM = OperatorTrait.RANDOM
RANDOM_IN_TRAINING = OperatorTrait.RANDOM_IN_TRAINING
HAS_BODY = OperatorTrait.HAS_BODY
STRUCTURE = OperatorTrait.STRUCTURE
FLAT = OperatorTrait.FLAT

# Rows are aligned, to be read as a table.
# fmt: off
# name, fusion kind, mixed precision, constant arguments, layout, terms of a sum, traits
ONNX_ROWS = (
    # Elementwise.
    _row("Abs",             ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, KNOWN),
    _row("Acos",            ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, FLAT),
    _row("Acosh",           ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, PLAIN),
    _row("Asin",            ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, PLAIN),
    _row("Asinh",           ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, PLAIN),
    _row("Atan",            ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, FLAT),
    _row("Atanh",           ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, PLAIN),
    _row("BitCast",         ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, PLAIN),
    _row("BitwiseNot",      ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, PLAIN),
    _row("Cast",            ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, KNOWN),
    _row("CastLike",        ELEMWISE, KEEP,   (), NO_RULE,     NO_SUM, PLAIN),
    _row("Ceil",            ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, KNOWN),
    _row("Celu",            ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, FLAT),
    _row("Clip",            ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, KNOWN),
    _row("Cos",             ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, FLAT),
    _row("Cosh",            ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, FLAT),
    _row("Dropout",         ELEMWISE, FOLLOW, (), SAME_AXES,   NO_SUM, RANDOM_IN_TRAINING),
    _row("Elu",             ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, FLAT),
    _row("Erf",             ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, FLAT),
    _row("Exp",             ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, FLAT),
    _row("Floor",           ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, KNOWN),
    _row("Gelu",            ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, FLAT),
    _row("HardSigmoid",     ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, FLAT),
    _row("HardSwish",       ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, FLAT),
    _row("Identity",        ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, KNOWN),
    _row("IsInf",           ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, PLAIN),
    _row("IsNaN",           ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, PLAIN),
    _row("LeakyRelu",       ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, PLAIN),
    _row("Log",             ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, PLAIN),
    _row("Mish",            ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, FLAT),
    _row("Neg",             ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, KNOWN),
    _row("Not",             ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, KNOWN),
    _row("Reciprocal",      ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, PLAIN),
    _row("Relu",            ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, PLAIN),
    _row("Round",           ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, KNOWN),
    _row("Selu",            ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, FLAT),
    _row("Shrink",          ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, PLAIN),
    _row("Sigmoid",         ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, FLAT),
    _row("Sign",            ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, KNOWN),
    _row("Sin",             ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, FLAT),
    _row("Sinh",            ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, PLAIN),
    _row("Softplus",        ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, FLAT),
    _row("Softsign",        ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, FLAT),
    _row("Sqrt",            ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, KNOWN),
    _row("Swish",           ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, FLAT),
    _row("Tan",             ELEMWISE, KEEP,   (), ELEMENTWISE, NO_SUM, PLAIN),
    _row("Tanh",            ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, FLAT),
    _row("ThresholdedRelu", ELEMWISE, FOLLOW, (), ELEMENTWISE, NO_SUM, PLAIN),
    # Elementwise with arguments that are stretched.
    _row("Add",                BROADCAST, FOLLOW, (),   ELEMENTWISE,  NO_SUM, KNOWN | COMMUTATIVE),
    _row("And",                BROADCAST, KEEP,   (),   ELEMENTWISE,  NO_SUM, KNOWN | COMMUTATIVE),
    _row("BatchNormalization", BROADCAST, FOLLOW, (),   IMAGE,        NO_SUM, PLAIN),
    _row("BitShift",           BROADCAST, KEEP,   (),   ELEMENTWISE,  NO_SUM, PLAIN),
    _row("BitwiseAnd",         BROADCAST, KEEP,   (),   ELEMENTWISE,  NO_SUM, COMMUTATIVE),
    _row("BitwiseOr",          BROADCAST, KEEP,   (),   ELEMENTWISE,  NO_SUM, COMMUTATIVE),
    _row("BitwiseXor",         BROADCAST, KEEP,   (),   ELEMENTWISE,  NO_SUM, COMMUTATIVE),
    _row("DequantizeLinear",   BROADCAST, KEEP,   (),   QUANTIZATION, NO_SUM, PLAIN),
    _row("Div",                BROADCAST, FOLLOW, (),   ELEMENTWISE,  NO_SUM, KNOWN),
    _row("Equal",              BROADCAST, KEEP,   (),   ELEMENTWISE,  NO_SUM, KNOWN | COMMUTATIVE),
    _row("Expand",             BROADCAST, FOLLOW, (1,), NO_RULE,      NO_SUM, KNOWN | SIZED),
    _row("Greater",            BROADCAST, KEEP,   (),   ELEMENTWISE,  NO_SUM, KNOWN),
    _row("GreaterOrEqual",     BROADCAST, KEEP,   (),   ELEMENTWISE,  NO_SUM, KNOWN),
    _row("Less",               BROADCAST, KEEP,   (),   ELEMENTWISE,  NO_SUM, KNOWN),
    _row("LessOrEqual",        BROADCAST, KEEP,   (),   ELEMENTWISE,  NO_SUM, KNOWN),
    _row("Max",                BROADCAST, FOLLOW, (),   ELEMENTWISE,  NO_SUM, KNOWN),
    _row("Mean",               BROADCAST, KEEP,   (),   ELEMENTWISE,  NO_SUM, PLAIN),
    _row("Min",                BROADCAST, FOLLOW, (),   ELEMENTWISE,  NO_SUM, KNOWN),
    _row("Mod",                BROADCAST, KEEP,   (),   ELEMENTWISE,  NO_SUM, KNOWN),
    _row("Mul",                BROADCAST, FOLLOW, (),   ELEMENTWISE,  NO_SUM, KNOWN | COMMUTATIVE),
    _row("Or",                 BROADCAST, KEEP,   (),   ELEMENTWISE,  NO_SUM, KNOWN | COMMUTATIVE),
    _row("PRelu",              BROADCAST, FOLLOW, (),   ELEMENTWISE,  NO_SUM, PLAIN),
    _row("Pow",                BROADCAST, KEEP,   (),   ELEMENTWISE,  NO_SUM, KNOWN),
    _row("QuantizeLinear",     BROADCAST, KEEP,   (),   QUANTIZATION, NO_SUM, PLAIN),
    _row("Sub",                BROADCAST, FOLLOW, (),   ELEMENTWISE,  NO_SUM, KNOWN),
    _row("Sum",                BROADCAST, FOLLOW, (),   ELEMENTWISE,  NO_SUM, PLAIN),
    _row("Where",              BROADCAST, FOLLOW, (),   ELEMENTWISE,  NO_SUM, KNOWN),
    _row("Xor",                BROADCAST, KEEP,   (),   ELEMENTWISE,  NO_SUM, COMMUTATIVE),
    # Moves of elements.
    _row("CenterCropPad",   INJECTIVE, FOLLOW, (1,),         NO_RULE,    NO_SUM, SIZED),
    _row("Concat",          INJECTIVE, FOLLOW, (),           NO_RULE,    NO_SUM, KNOWN),
    _row("Constant",        INJECTIVE, KEEP,   (),           NO_RULE,    NO_SUM, PLAIN),
    _row("ConstantOfShape", INJECTIVE, KEEP,   (0,),         NO_RULE,    NO_SUM, KNOWN | SIZED),
    _row("DepthToSpace",    INJECTIVE, FOLLOW, (),           IMAGE,      NO_SUM, PLAIN),
    _row("EyeLike",         INJECTIVE, KEEP,   (),           NO_RULE,    NO_SUM, SIZED),
    _row("Flatten",         INJECTIVE, FOLLOW, (),           NO_RULE,    NO_SUM, PLAIN),
    _row("Gather",          INJECTIVE, FOLLOW, (),           NO_RULE,    NO_SUM, KNOWN | WEIGHTED),
    _row("GatherElements",  INJECTIVE, FOLLOW, (),           NO_RULE,    NO_SUM, PLAIN),
    _row("GatherND",        INJECTIVE, FOLLOW, (),           NO_RULE,    NO_SUM, PLAIN),
    _row("OneHot",          INJECTIVE, KEEP,   (1,),         NO_RULE,    NO_SUM, SIZED),
    _row("Pad",             INJECTIVE, FOLLOW, (1, 3),       PAD,        NO_SUM, SIZED),
    _row("Range",           INJECTIVE, KEEP,   (0, 1, 2),    NO_RULE,    NO_SUM, KNOWN | SIZED | FLOAT_SIZES),
    _row("Reshape",         INJECTIVE, FOLLOW, (1,),         NO_RULE,    NO_SUM, KNOWN),
    _row("ReverseSequence", INJECTIVE, FOLLOW, (),           NO_RULE,    NO_SUM, PLAIN),
    _row("RotaryEmbedding", INJECTIVE, FOLLOW, (),           NO_RULE,    NO_SUM, PLAIN),
    _row("Slice",           INJECTIVE, FOLLOW, (1, 2, 3, 4), SLICE,      NO_SUM, KNOWN),
    _row("SpaceToDepth",    INJECTIVE, FOLLOW, (),           IMAGE,      NO_SUM, PLAIN),
    _row("Split",           INJECTIVE, FOLLOW, (1,),         FIRST_AXIS, NO_SUM, PLAIN),
    _row("Squeeze",         INJECTIVE, FOLLOW, (1,),         SQUEEZE,    NO_SUM, KNOWN),
    _row("Tile",            INJECTIVE, FOLLOW, (1,),         NO_RULE,    NO_SUM, KNOWN | SIZED),
    _row("Transpose",       INJECTIVE, FOLLOW, (),           NO_RULE,    NO_SUM, KNOWN),
    _row("Trilu",           INJECTIVE, FOLLOW, (1,),         NO_RULE,    NO_SUM, PLAIN),
    _row("Unsqueeze",       INJECTIVE, FOLLOW, (1,),         NO_RULE,    NO_SUM, KNOWN),
    # Reductions.
    _row("ArgMax",            COMM_REDUCE, FOLLOW, (),   POSITION,  REDUCED, PLAIN),
    _row("ArgMin",            COMM_REDUCE, FOLLOW, (),   POSITION,  REDUCED, PLAIN),
    _row("GlobalAveragePool", COMM_REDUCE, KEEP,   (),   IMAGE,     REDUCED, PLAIN),
    _row("GlobalLpPool",      COMM_REDUCE, KEEP,   (),   IMAGE,     REDUCED, PLAIN),
    _row("GlobalMaxPool",     COMM_REDUCE, FOLLOW, (),   IMAGE,     REDUCED, PLAIN),
    _row("ReduceL1",          COMM_REDUCE, KEEP,   (1,), REDUCTION, REDUCED, PLAIN),
    _row("ReduceL2",          COMM_REDUCE, KEEP,   (1,), REDUCTION, REDUCED, PLAIN),
    _row("ReduceLogSum",      COMM_REDUCE, KEEP,   (1,), REDUCTION, REDUCED, PLAIN),
    _row("ReduceLogSumExp",   COMM_REDUCE, KEEP,   (1,), REDUCTION, REDUCED, PLAIN),
    _row("ReduceMax",         COMM_REDUCE, FOLLOW, (1,), REDUCTION, REDUCED, KNOWN),
    _row("ReduceMean",        COMM_REDUCE, KEEP,   (1,), REDUCTION, REDUCED, PLAIN),
    _row("ReduceMin",         COMM_REDUCE, FOLLOW, (1,), REDUCTION, REDUCED, KNOWN),
    _row("ReduceProd",        COMM_REDUCE, KEEP,   (1,), REDUCTION, REDUCED, KNOWN),
    _row("ReduceSum",         COMM_REDUCE, KEEP,   (1,), REDUCTION, REDUCED, KNOWN),
    _row("ReduceSumSquare",   COMM_REDUCE, KEEP,   (1,), REDUCTION, REDUCED, PLAIN),
    # Heavy operators that take an epilogue.
    _row("AveragePool",   OUT_FUSABLE, FOLLOW, (),        IMAGE,   WINDOW,            PLAIN),
    _row("Conv",          OUT_FUSABLE, LOWER,  (),        IMAGE,   FILTER,            PRODUCT | WEIGHTED),
    _row("ConvInteger",   OUT_FUSABLE, KEEP,   (),        NO_RULE, FILTER,            PRODUCT | WEIGHTED),
    _row("ConvTranspose", OUT_FUSABLE, LOWER,  (),        IMAGE,   TRANSPOSED_FILTER, PRODUCT | WEIGHTED),
    _row("DeformConv",    OUT_FUSABLE, KEEP,   (),        NO_RULE, NO_SUM,            PLAIN),
    _row("Einsum",        OUT_FUSABLE, LOWER,  (),        NO_RULE, PER_ITEM,          PLAIN),
    _row("Gemm",          OUT_FUSABLE, LOWER,  (),        NO_RULE, GEMM,              PRODUCT | WEIGHTED),
    _row("GridSample",    OUT_FUSABLE, KEEP,   (),        NO_RULE, NO_SUM,            SIZED),
    _row("LRN",           OUT_FUSABLE, KEEP,   (),        IMAGE,   LARGEST_AXIS,      PLAIN),
    _row("LpPool",        OUT_FUSABLE, KEEP,   (),        IMAGE,   WINDOW,            PLAIN),
    _row("MatMul",        OUT_FUSABLE, LOWER,  (),        NO_RULE, INNER,             PRODUCT | WEIGHTED),
    _row("MatMulInteger", OUT_FUSABLE, KEEP,   (),        NO_RULE, INNER,             PRODUCT | WEIGHTED),
    _row("MaxPool",       OUT_FUSABLE, FOLLOW, (),        IMAGE,   NO_SUM,            PLAIN),
    _row("QLinearConv",   OUT_FUSABLE, KEEP,   (),        NO_RULE, QUANTIZED_FILTER,  PRODUCT),
    _row("QLinearMatMul", OUT_FUSABLE, KEEP,   (),        NO_RULE, INNER,             PLAIN),
    _row("Resize",        OUT_FUSABLE, FOLLOW, (1, 2, 3), RESIZE,  NO_SUM,            SIZED | FLOAT_SIZES),
    # The rest: nothing is fused with them.
    _row("AffineGrid",                OPAQUE, KEEP,   (1,),   NO_RULE,    NO_SUM,       SIZED),
    _row("Attention",                 OPAQUE, KEEP,   (),     NO_RULE,    LARGEST_AXIS, PLAIN),
    _row("Bernoulli",                 OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       RANDOM),
    _row("BlackmanWindow",            OPAQUE, KEEP,   (0,),   NO_RULE,    NO_SUM,       SIZED),
    _row("Col2Im",                    OPAQUE, KEEP,   (1, 2), NO_RULE,    NO_SUM,       SIZED),
    _row("Compress",                  OPAQUE, FOLLOW, (),     NO_RULE,    NO_SUM,       PLAIN),
    _row("ConcatFromSequence",        OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       STRUCTURE),
    _row("CumProd",                   OPAQUE, KEEP,   (1,),   CUMULATION, NO_SUM,       PLAIN),
    _row("CumSum",                    OPAQUE, KEEP,   (1,),   CUMULATION, LARGEST_AXIS, KNOWN),
    _row("DFT",                       OPAQUE, KEEP,   (1, 2), NO_RULE,    LARGEST_AXIS, SIZED),
    _row("Det",                       OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       PLAIN),
    _row("DynamicQuantizeLinear",     OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       PLAIN),
    _row("GRU",                       OPAQUE, KEEP,   (),     NO_RULE,    RECURRENT,    WEIGHTED),
    _row("GroupNormalization",        OPAQUE, KEEP,   (),     IMAGE,      PER_ITEM,     PLAIN),
    _row("HammingWindow",             OPAQUE, KEEP,   (0,),   NO_RULE,    NO_SUM,       SIZED),
    _row("HannWindow",                OPAQUE, KEEP,   (0,),   NO_RULE,    NO_SUM,       SIZED),
    _row("Hardmax",                   OPAQUE, KEEP,   (),     LAST_AXIS,  NO_SUM,       PLAIN),
    _row("If",                        OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       PLAIN),
    _row("ImageDecoder",              OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       PLAIN),
    _row("InstanceNormalization",     OPAQUE, KEEP,   (),     IMAGE,      PER_ITEM,     PLAIN),
    _row("LSTM",                      OPAQUE, KEEP,   (),     NO_RULE,    RECURRENT,    WEIGHTED),
    _row("LayerNormalization",        OPAQUE, KEEP,   (),     NO_RULE,    LARGEST_AXIS, PLAIN),
    _row("LogSoftmax",                OPAQUE, KEEP,   (),     LAST_AXIS,  LARGEST_AXIS, PLAIN),
    _row("Loop",                      OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       HAS_BODY),
    _row("LpNormalization",           OPAQUE, KEEP,   (),     LAST_AXIS,  NO_SUM,       PLAIN),
    _row("MaxRoiPool",                OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       PLAIN),
    _row("MaxUnpool",                 OPAQUE, KEEP,   (2,),   NO_RULE,    NO_SUM,       SIZED),
    _row("MeanVarianceNormalization", OPAQUE, KEEP,   (),     NO_RULE,    PER_ITEM,     PLAIN),
    _row("MelWeightMatrix",           OPAQUE, KEEP,   (0, 1), NO_RULE,    NO_SUM,       SIZED),
    _row("Multinomial",               OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       RANDOM),
    _row("NegativeLogLikelihoodLoss", OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       PLAIN),
    _row("NonMaxSuppression",         OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       PLAIN),
    _row("NonZero",                   OPAQUE, FOLLOW, (),     NO_RULE,    NO_SUM,       PLAIN),
    _row("Optional",                  OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       STRUCTURE),
    _row("OptionalGetElement",        OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       STRUCTURE),
    _row("OptionalHasElement",        OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       STRUCTURE),
    _row("RMSNormalization",          OPAQUE, KEEP,   (),     NO_RULE,    LARGEST_AXIS, PLAIN),
    _row("RNN",                       OPAQUE, KEEP,   (),     NO_RULE,    RECURRENT,    WEIGHTED),
    _row("RandomNormal",              OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       RANDOM),
    _row("RandomNormalLike",          OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       RANDOM),
    _row("RandomUniform",             OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       RANDOM),
    _row("RandomUniformLike",         OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       RANDOM),
    _row("RegexFullMatch",            OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       PLAIN),
    _row("RoiAlign",                  OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       PLAIN),
    _row("STFT",                      OPAQUE, KEEP,   (1, 3), NO_RULE,    LARGEST_AXIS, SIZED),
    _row("Scan",                      OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       HAS_BODY),
    _row("ScatterElements",           OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       KNOWN),
    _row("ScatterND",                 OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       KNOWN),
    _row("SequenceAt",                OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       STRUCTURE),
    _row("SequenceConstruct",         OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       STRUCTURE),
    _row("SequenceEmpty",             OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       STRUCTURE),
    _row("SequenceErase",             OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       STRUCTURE),
    _row("SequenceInsert",            OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       STRUCTURE),
    _row("SequenceLength",            OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       STRUCTURE),
    _row("SequenceMap",               OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       HAS_BODY),
    _row("Shape",                     OPAQUE, FOLLOW, (),     NO_RULE,    NO_SUM,       KNOWN | READS_SHAPE),
    _row("Size",                      OPAQUE, FOLLOW, (),     NO_RULE,    NO_SUM,       KNOWN | READS_SHAPE),
    _row("Softmax",                   OPAQUE, KEEP,   (),     LAST_AXIS,  LARGEST_AXIS, FLAT),
    _row("SoftmaxCrossEntropyLoss",   OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       PLAIN),
    _row("SplitToSequence",           OPAQUE, KEEP,   (1,),   NO_RULE,    NO_SUM,       STRUCTURE),
    _row("StringConcat",              OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       PLAIN),
    _row("StringNormalizer",          OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       PLAIN),
    _row("StringSplit",               OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       PLAIN),
    _row("TensorScatter",             OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       PLAIN),
    _row("TfIdfVectorizer",           OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       SIZED),
    _row("TopK",                      OPAQUE, FOLLOW, (1,),   LAST_AXIS,  NO_SUM,       PLAIN),
    _row("Unique",                    OPAQUE, KEEP,   (),     NO_RULE,    NO_SUM,       PLAIN),
)
"""Operators of ONNX's default domain."""

INTARSIA_ROWS = (
    _row("counted_boxes",    OPAQUE,    KEEP, (), NO_RULE, NO_SUM, PLAIN),
    _row("counted_indices",  OPAQUE,    KEEP, (), NO_RULE, NO_SUM, PLAIN),
    _row("device_copy",      OPAQUE,    KEEP, (), NO_RULE, NO_SUM, PLAIN),
    _row("layout_transform", INJECTIVE, KEEP, (), NO_RULE, NO_SUM, PLAIN),
    _row("on_device",        OPAQUE,    KEEP, (), NO_RULE, NO_SUM, PLAIN),
    _row("simulated_quantize", OPAQUE,  KEEP, (), NO_RULE, NO_SUM, PLAIN),
    _row("token_append",     OPAQUE,    KEEP, (), NO_RULE, NO_SUM, PLAIN),
    _row("token_attention",  OPAQUE,    KEEP, (), NO_RULE, LARGEST_AXIS, PLAIN),
    _row("token_filter",     OPAQUE,    KEEP, (), NO_RULE, LARGEST_AXIS, PLAIN),
    _row("token_pool",       OPAQUE,    KEEP, (), NO_RULE, NO_SUM, PLAIN),
    _row("token_positions",  OPAQUE,    KEEP, (), NO_RULE, NO_SUM, PLAIN),
    _row("token_window",     OPAQUE,    KEEP, (), NO_RULE, NO_SUM, PLAIN),
    _row("tree_ensemble",    OPAQUE,    KEEP, (), NO_RULE, NO_SUM, PLAIN),
)
"""Operators of the domain "intarsia" (`op.intarsia_ops`)."""

FOREIGN_ROWS = (
    _row("com.microsoft::GridSample",    OPAQUE, KEEP, (),        NO_RULE, NO_SUM, SIZED),
    _row("com.microsoft::Pad",           OPAQUE, KEEP, (),        NO_RULE, NO_SUM, SIZED),
    _row("com.microsoft::QLinearConv",   OPAQUE, KEEP, (),        NO_RULE, NO_SUM, PRODUCT),
    _row("com.microsoft::Range",         OPAQUE, KEEP, (0, 1, 2), NO_RULE, NO_SUM, SIZED | FLOAT_SIZES),
    _row("com.microsoft.nchwc::Conv",    OPAQUE, KEEP, (),        NO_RULE, NO_SUM, PRODUCT),
    _row("com.microsoft.nchwc::Upsample", OPAQUE, KEEP, (),        NO_RULE, NO_SUM, SIZED),
)
"""Operators of other domains of which more is known than `FOREIGN` says, with their domains."""

FOREIGN = _row("", OPAQUE, KEEP, (), NO_RULE, NO_SUM, PLAIN)
"""What is assumed of any other operator of another domain: nothing that would let it be fused or changed."""
# fmt: on

OPERATORS = MappingProxyType({row.name: row for row in ONNX_ROWS})
"""Row by operator of ONNX's default domain."""

_INTARSIA = MappingProxyType({row.name: row for row in INTARSIA_ROWS})
_FOREIGN = MappingProxyType({row.name: row for row in FOREIGN_ROWS})


def facts_of(op: Op) -> OperatorFacts:
    """Return the row of an operator; `FOREIGN` for one of another domain that has no row of its own.

    Of a registered operator only the fusion kind may differ from `FOREIGN`.

    Raises:
        InvalidModelError: ONNX's default domain, or ours, has no such operator.
    """
    if op.domain not in ("", INTARSIA_DOMAIN):
        return _FOREIGN.get(str(op)) or _registered_facts(op)
    facts = (_INTARSIA if op.domain else OPERATORS).get(op.name)
    if facts is None:
        raise unknown_operator(op.name, op.domain)
    return facts


def _registered_facts(op: Op) -> OperatorFacts:
    definition = definition_of(op.domain, op.name)
    fusion = FOREIGN.fusion if definition is None else definition.fusion
    return FOREIGN if fusion is FOREIGN.fusion else replace(FOREIGN, name=op.name, fusion=fusion)


@cache
def operators_with(trait: OperatorTrait) -> frozenset[str]:
    """Names of the operators of ONNX's default domain of which a trait is true."""
    return frozenset(row.name for row in ONNX_ROWS if row.has(trait))


def op_pattern(op: Op) -> OpPatternKind:
    """The fusion kind of an operator (TVM's TOpPattern).

    Raises:
        InvalidModelError: ONNX's default domain, or ours, has no such operator.
    """
    return facts_of(op).fusion
