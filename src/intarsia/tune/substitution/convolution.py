"""Convolutions with their attributes, defaults filled in."""

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
        strides: Stride of the kernel along each spatial axis.
        dilations: Dilation of the kernel along each spatial axis.
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
        """Return an expression as a convolution; None for other expressions and for unknown sizes or pads."""
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
        """Whether each output pixel depends only on the input pixel at its position (1 x 1 kernel)."""
        ones = (1,) * len(self.kernel)
        return self.kernel == self.strides == ones and not any(self.pads) and self.group == 1

    @property
    def geometry(self) -> tuple[object, ...]:
        """Everything but channels: two that agree visit the same pixels."""
        return (self.kernel, self.strides, self.dilations, self.pads, self.group)

    @property
    def x(self) -> Expr:
        """The input."""
        return self.call.args[0]

    @property
    def weight(self) -> Expr:
        """The weights."""
        return self.call.args[1]

    @property
    def bias(self) -> Expr | None:
        """The bias, one number per output channel; None without one."""
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
        """Build a convolution of the same geometry, without a bias unless one is given.

        Args:
            x: The input; default: the same.
            weight: The weights; default: the same.
            bias: The bias; default: none.
            pads: Other pads.
            has_kernel_shape: Whether to keep the attribute `kernel_shape`; false if the kernel changes size.
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
    biases = [
        like(convolution.call, [0.0] * convolution.outputs) if convolution.bias is None else convolution.bias
        for convolution in (first, second)
    ]
    return concatenated(biases, 0)


def added_bias(first: Convolution, second: Convolution) -> Expr | None:
    """The sum of the biases of two convolutions; None if neither has one."""
    if first.bias is None or second.bias is None:
        return second.bias if first.bias is None else first.bias
    return call("Add", first.bias, second.bias)
