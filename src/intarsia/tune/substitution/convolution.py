"""What a convolution does, with defaults written out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from intarsia.ir import Call, Expr
from intarsia.op import absent, call
from intarsia.passes.rules.tensor_facts import dims_of, int_attr, ints_attr, operator_name
from intarsia.tune.substitution.building import called, concatenated, is_absent, like


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution with a kernel of known size and explicit pads.

    Attributes:
        call: The call.
        outputs: Output channels.
        inputs: Input channels of each group.
        kernel: Sizes of the kernel.
        strides: Steps of the kernel.
        dilations: Steps between the kernel's elements.
        pads: Zeros before each spatial axis, then behind each.
        group: Groups of channels.
    """

    call: Call
    outputs: int
    inputs: int
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    group: int

    @classmethod
    def of(cls, expr: Expr) -> Self | None:
        """The convolution that an expression is; None for all else, and for what is not known."""
        if operator_name(expr) != "Conv" or not isinstance(expr, Call):
            return None
        dims = dims_of(expr.args[1])
        sizes = tuple(dim for dim in dims or () if isinstance(dim, int))
        if dims is None or len(sizes) < len(dims) or expr.attrs.get("auto_pad", "NOTSET") != "NOTSET":
            return None
        kernel, rank = sizes[2:], len(sizes) - 2
        return cls(
            expr,
            sizes[0],
            sizes[1],
            kernel,
            ints_attr(expr.attrs, "strides") or (1,) * rank,
            ints_attr(expr.attrs, "dilations") or (1,) * rank,
            ints_attr(expr.attrs, "pads") or (0,) * (2 * rank),
            int_attr(expr.attrs, "group", 1),
        )

    @property
    def is_pointwise(self) -> bool:
        """Whether each output pixel is of the one input pixel at its place."""
        ones = (1,) * len(self.kernel)
        return self.kernel == self.strides == ones and not any(self.pads) and self.group == 1

    @property
    def geometry(self) -> tuple[object, ...]:
        """Everything but channels: two that agree visit the same pixels."""
        return (self.kernel, self.strides, self.dilations, self.pads, self.group)

    @property
    def x(self) -> Expr:
        """What is convolved."""
        return self.call.args[0]

    @property
    def weight(self) -> Expr:
        """The weights."""
        return self.call.args[1]

    @property
    def bias(self) -> Expr | None:
        """What is added to each output channel."""
        has_bias = len(self.call.args) > 2 and not is_absent(self.call.args[2])
        return self.call.args[2] if has_bias else None

    def rebuilt(
        self,
        x: Expr | None = None,
        weight: Expr | None = None,
        bias: Expr | None = None,
        *,
        pads: tuple[int, ...] | None = None,
        has_kernel_shape: bool = True,
    ) -> Call:
        """A convolution of the same geometry, without a bias unless one is given.

        Args:
            x: What is convolved; default: the same.
            weight: The weights; default: the same.
            bias: What is added to each output channel.
            pads: Other pads.
            has_kernel_shape: Whether an attribute `kernel_shape` stays; it does not if the kernel changes.
        """
        attrs = dict(self.call.attrs)
        if not has_kernel_shape:
            attrs.pop("kernel_shape", None)
        if pads is not None:
            attrs["pads"] = pads
        return called(
            "Conv",
            attrs,
            self.x if x is None else x,
            self.weight if weight is None else weight,
            absent() if bias is None else bias,
        )


def joined_bias(first: Convolution, second: Convolution) -> Expr | None:
    """The biases of two convolutions one after the other, zeros where one has none; None if neither has."""
    if first.bias is None and second.bias is None:
        return None
    one, other = (
        like(each.call, [0.0] * each.outputs) if each.bias is None else each.bias for each in (first, second)
    )
    return concatenated((one, other), 0)


def added_bias(first: Convolution, second: Convolution) -> Expr | None:
    """The sum of the biases of two convolutions; None if neither has one."""
    if first.bias is None or second.bias is None:
        return second.bias if first.bias is None else first.bias
    return call("Add", first.bias, second.bias)
