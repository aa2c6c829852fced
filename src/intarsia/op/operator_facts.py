"""What is known of an operator: the columns of `op.operator_table`, and what each value means."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, Flag, IntEnum, StrEnum, auto


class OpPatternKind(IntEnum):
    """Fusion kinds, from the most to the least fusable (seed collage_rfc; TVM's TOpPattern, in its order)."""

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


class PrecisionKind(StrEnum):
    """What mixed precision does with an operator."""

    LOWER = "lower"
    """Heavy and safe: sums of products, which toolchains accumulate in float32. Worth casting the inputs."""
    FOLLOW = "follow"
    """As exact as its inputs: goes with them, but is not worth a cast."""
    KEEP = "keep"
    """Long sums, exponentials, powers, comparisons, and what is no arithmetic: stays in float32."""


class LayoutKind(Enum):
    """How an operator behaves when the axes of its operands are permuted; the rules are in `op.layout`."""

    NO_RULE = auto()
    """A Transpose cannot be moved behind it by a rule of `op.layout`."""
    ELEMENTWISE = auto()
    """Every argument is an operand of each element: all of them are permuted alike."""
    IMAGE = auto()
    """Its first argument and its result are images, channels first; it can be converted to channels last."""
    SAME_AXES = auto()
    """The first argument's axes are the result's, and nothing else speaks of axes."""
    LAST_AXIS = auto()
    """The attribute `axis` names an axis, the last one where it is left out."""
    FIRST_AXIS = auto()
    """The attribute `axis` names an axis, the first one where it is left out."""
    POSITION = auto()
    """As FIRST_AXIS, but `keepdims` says whether the axis stays."""
    REDUCTION = auto()
    """Argument 1 names the axes, and `keepdims` says whether they stay."""
    CUMULATION = auto()
    """Argument 1 names the axis."""
    QUANTIZATION = auto()
    """Scales belong to the whole tensor, or to the axis that the attribute `axis` names."""
    PAD = auto()
    """Pads of each axis, or of those that argument 3 names."""
    RESIZE = auto()
    """Scales or sizes of each axis."""
    SLICE = auto()
    """Bounds of the first axes, or of those that argument 3 names."""
    SQUEEZE = auto()
    """Argument 1 names the axes, which go."""


class SumKind(Enum):
    """How many terms the sum behind one element of the result has; computed in `measure.work`."""

    NO_SUM = auto()
    """Nothing is summed, or a handful of terms."""
    REDUCED = auto()
    """As many as elements of the first argument go into one of the result."""
    FILTER = auto()
    """The elements of one filter, argument 1."""
    QUANTIZED_FILTER = auto()
    """The elements of one filter, argument 3."""
    TRANSPOSED_FILTER = auto()
    """The elements of all filters, argument 1, that meet in one channel of the result."""
    INNER = auto()
    """The last axis of the first argument."""
    GEMM = auto()
    """The inner axis of a product whose first matrix may be transposed."""
    RECURRENT = auto()
    """Steps times the inner axes of the products of a step."""
    WINDOW = auto()
    """The elements of a window, attribute `kernel_shape`."""
    LARGEST_AXIS = auto()
    """The longest axis of the first argument."""
    PER_ITEM = auto()
    """The elements of the largest argument for each index of the first axis of argument 0."""


class OperatorTrait(Flag):
    """Facts that are true or false of an operator."""

    PLAIN = 0
    """None of the others."""
    KNOWN = auto()
    """Shapes are computed with it: its value is computed when a call is built, if its arguments are known."""
    SIZED = auto()
    """The result may be of any size, whatever the sizes of the arguments."""
    FLOAT_SIZES = auto()
    """Floating-point values of its constant arguments decide the shape of the result."""
    READS_SHAPE = auto()
    """The result depends on the shape of the argument, and on none of its elements."""
    PRODUCT = auto()
    """A convolution or matrix product whose multiply-adds are counted."""
    WEIGHTED = auto()
    """Has arguments that are large weights, which engines read where they are."""
    COMMUTATIVE = auto()
    """Of two arguments, whose order makes no difference in any bit of the result."""
    RANDOM = auto()
    """Draws random numbers at each call."""
    RANDOM_IN_TRAINING = auto()
    """Draws random numbers unless its argument 2, the training mode, is absent or false."""
    HAS_BODY = auto()
    """The last argument is a function that is called for each step or element."""
    STRUCTURE = auto()
    """Stores tensors in a sequence or optional, or takes them out of one."""
    FLAT = auto()
    """Near some arguments (Erf of 4, Cos of 0) the result hardly changes with them, but is rounded."""


@dataclass(frozen=True, slots=True)
class OperatorFacts:
    """One row of `op.operator_table`. Every fact is given; there are no defaults.

    Attributes:
        name: Operator, without its domain.
        fusion: Fusion kind.
        precision: Treatment by mixed precision.
        constant_arguments: Positions of the arguments that `op.constant_argument` describes.
        layout: Effect of a permutation of the operands' axes.
        summation: Terms of the sum behind an element of its result.
        traits: Further properties.
    """

    name: str
    fusion: OpPatternKind
    precision: PrecisionKind
    constant_arguments: tuple[int, ...]
    layout: LayoutKind
    summation: SumKind
    traits: OperatorTrait

    def has(self, trait: OperatorTrait) -> bool:
        """Whether a trait, or one of several, is true of the operator."""
        return bool(self.traits.value & trait.value)
