"""Each call is given to a toolchain that can run it."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import Call, Expr, Function, IRModule, children, post_order, with_children, with_fields
from intarsia.op.operator_predicate import OperatorPredicate, operator_predicate
from intarsia.passes.functions.sealed import is_sealed
from intarsia.passes.regions.dataflow import Dataflow
from intarsia.passes.regions.toolchain_call import assigned_toolchain, is_candidate, is_supported
from intarsia.support.errors import UsageError
from intarsia.target import Target, VirtualDevice
from intarsia.transform import FunctionPass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class AnnotateTarget(FunctionPass, opt_level=0, required=("InferType",)):
    """Writes on each supported call which toolchain is to run it: as the target of its virtual device.

    No expression is added (seed virtual_device, regions without begin and end; docs/decisions/0006).

    * The first of the toolchains that supports a call gets it: by its operator predicate, or because the
      call is of a Composite function of it. Calls that have a toolchain already keep it.
    * A planned device is refined: it keeps number and memory, and options of its target.
    * Left alone are calls with values of unknown type, the insides of functions that are units already, and
      bodies of Loop, Scan and SequenceMap, which go with their operator.

    Linear.

    Before:
        def @main(%x: Tensor[(2,), float32]) { Relu(%x) }
    After:
        def @main(%x: Tensor[(2,), float32]) {
          Relu(%x) @device(cpu, target="cpu -toolchain=onnxruntime")
        }

    Attributes:
        toolchains: Names, or texts of targets ("cpu -toolchain=openvino -threads=2"), the preferred first.
    """

    toolchains: tuple[str, ...]

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function with its calls assigned.

        Raises:
            UsageError: There is no such toolchain.
        """
        offers = tuple(map(_offer, self.toolchains))
        if is_sealed(function):
            return function
        assigned = {expr: _device(expr, offers) for expr in Dataflow.of(function).nodes}
        done: dict[Expr, Expr] = {}
        for expr in post_order(function):
            done[expr] = with_children(expr, tuple(done[child] for child in children(expr)))
            device = assigned.get(expr)
            if device is not None:
                done[expr] = with_fields(done[expr], virtual_device=device)
        after = done[function]
        assert isinstance(after, Function)
        return after


@dataclass(frozen=True, slots=True)
class _Offer:
    """A target, and what its toolchain supports."""

    target: Target
    toolchain: str
    predicate: OperatorPredicate


def toolchain_target(text: str) -> Target:
    """The target of a toolchain, by its name or the text of the target.

    Raises:
        UsageError: It is the text of a target without toolchain.
    """
    target = Target(text) if len(text.split()) > 1 else Target.for_toolchain(text)
    if target.toolchain is None:
        raise UsageError(
            f'target "{text}" names no toolchain', help="write, for example, -toolchain=openvino"
        )
    return target


def _offer(text: str) -> _Offer:
    target = toolchain_target(text)
    assert target.toolchain is not None
    return _Offer(target, target.toolchain, operator_predicate(target.toolchain))


def _device(expr: Expr, offers: tuple[_Offer, ...]) -> VirtualDevice | None:
    """The device of a call with the target of the first toolchain that supports it; None if it stays."""
    if not isinstance(expr, Call) or not is_candidate(expr) or assigned_toolchain(expr) is not None:
        return None
    for offer in offers:
        device = _refined(expr.virtual_device, offer.target)
        if device is not None and is_supported(expr, offer.toolchain, offer.predicate):
            return device
    return None


def _refined(device: VirtualDevice, target: Target) -> VirtualDevice | None:
    """A device with a toolchain's target, which takes over the options that it does not set itself.

    None if it is a device of another kind.
    """
    if device.device_type not in (None, target.device_type):
        return None
    if device.target is not None:
        options = {**dict(device.target.options), **dict(target.options)}
        target = target.with_options(**options)
    return VirtualDevice(target.device_type, device.virtual_device_id, target, device.memory_scope)
