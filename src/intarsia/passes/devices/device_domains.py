"""Domains: sets of values that lie on one device, and what is known about it.

Source: reference C.3, unification. A domain is a number, joined with others by union-find; a value that is a
function has a domain for each parameter and the result, and so have functions that a tuple holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

from intarsia.ir import Call, Expr, Function, FuncType, Op, TupleType, Type, Var
from intarsia.op.device_call import placement_of
from intarsia.support.errors import InvalidModelError
from intarsia.target import UNCONSTRAINED, VirtualDevice


@dataclass(frozen=True, slots=True, eq=False)
class FunctionDomain:
    """Where a function takes its arguments and leaves its result."""

    params: tuple[Domain, ...]
    result: Domain


@dataclass(frozen=True, slots=True, eq=False)
class FieldsDomain:
    """A tuple that holds functions: each of these has domains of its own, all else is in one place.

    Attributes:
        fields: The domain of each field.
        plain: Domain of the tuple, of all fields that are no functions, and of fields of such fields.
    """

    fields: tuple[Domain, ...]
    plain: int


Domain: TypeAlias = int | FunctionDomain | FieldsDomain


@dataclass(frozen=True, slots=True)
class Site:
    """An annotation: what it says, of which expression, in which global function."""

    device: VirtualDevice
    expr: Expr
    owner: str

    def __str__(self) -> str:
        """`VirtualDevice(cpu:0) by on_device of Relu in @main (node 'a' of model.onnx)`."""
        span = self.expr.span
        where = f" (node {span.node!r} of {span.source})" if span else ""
        return f"{self.device} by {_shown(self.expr)} in @{self.owner}{where}"


@dataclass(eq=False)
class DeviceConflictError(InvalidModelError):
    """Two annotations put one value on different devices; both are named.

    Attributes:
        sites: The annotations.
    """

    sites: tuple[Site, ...] = field(default=(), kw_only=True)


class DeviceDomains:
    """All domains of a program. Amortised constant time for each operation."""

    def __init__(self) -> None:
        self._parents: list[int] = []
        self._known: list[VirtualDevice] = []
        self._sites: list[tuple[Site, ...]] = []

    def __len__(self) -> int:
        return len(self._parents)

    def new(self) -> int:
        """A domain of which nothing is known."""
        self._parents.append(len(self._parents))
        self._known.append(UNCONSTRAINED)
        self._sites.append(())
        return len(self._parents) - 1

    def of_type(self, type_: Type | None) -> Domain:
        """A new domain for a value of a type."""
        match type_:
            case FuncType(params=params, result=result):
                return FunctionDomain(tuple(map(self.of_type, params)), self.of_type(result))
            case TupleType() if _holds_function(type_):
                return self._in_place(type_, self.new() if _holds_data(type_) else None)
            case _:
                return self.new()

    def _in_place(self, type_: Type, domain: int | None) -> Domain:
        """As `of_type`, for a tuple in a place, or a field of it; None: it is where its first function is."""
        match type_:
            case TupleType(fields=types) if _holds_function(type_):
                fields = tuple(self._in_place(field, domain) for field in types)
                return FieldsDomain(fields, main_leaf(fields[0]) if domain is None else domain)
            case FuncType():
                return self.of_type(type_)
            case _:
                return self.new() if domain is None else domain

    def find(self, domain: int) -> int:
        """The number that stands for all that has been joined with a domain."""
        root = domain
        while self._parents[root] != root:
            root = self._parents[root]
        while self._parents[domain] != root:
            self._parents[domain], domain = root, self._parents[domain]
        return root

    def known(self, domain: int) -> VirtualDevice:
        """Device type, number and memory scope, as far as annotations say."""
        return self._known[self.find(domain)]

    def constrain(self, domain: Domain, site: Site, *, is_required: bool = True) -> bool:
        """Add what an annotation says; of a function, about its result, of a tuple, about its place.

        Args:
            domain: Domain of the site.
            site: The annotation. Its target says nothing about where a value is.
            is_required: Whether a contradiction is an error.

        Returns:
            Whether it fits what is known; if not, nothing has changed.

        Raises:
            DeviceConflictError: It does not.
        """
        device, root = place_of(site.device), self.find(main_leaf(domain))
        joined = VirtualDevice.join(self._known[root], device)
        if joined is None:
            if is_required:
                raise _conflict(self._sites[root], (site,))
            return False
        if joined != self._known[root]:
            self._known[root] = joined
            self._sites[root] += (site,)
        return True

    def can_join(self, domains: Iterable[int]) -> bool:
        """Whether annotations allow all of these domains to be one."""
        joined: VirtualDevice | None = UNCONSTRAINED
        for domain in domains:
            joined = None if joined is None else VirtualDevice.join(joined, self.known(domain))
        return joined is not None

    def join(self, left: int, right: int, *, is_required: bool = True) -> bool:
        """Make one domain of two; as `constrain`."""
        left, right = sorted((self.find(left), self.find(right)))
        if left == right:
            return True
        joined = VirtualDevice.join(self._known[left], self._known[right])
        if joined is None:
            if is_required:
                raise _conflict(self._sites[left], self._sites[right])
            return False
        self._parents[right] = left
        self._sites[left] += tuple(site for site in self._sites[right] if site not in self._sites[left])
        self._known[left] = joined
        return True

    def unify(self, left: Domain, right: Domain) -> None:
        """Make two values lie on the same devices, functions argument by argument.

        Raises:
            DeviceConflictError: Annotations contradict it.
        """
        match left, right:
            case int(), int():
                self.join(left, right)
            case FunctionDomain(), FunctionDomain():
                for first, second in zip(left.params, right.params, strict=False):
                    self.unify(first, second)
                self.unify(left.result, right.result)
            case FieldsDomain(), FieldsDomain():
                self.join(left.plain, right.plain)
                for first, second in zip(left.fields, right.fields, strict=False):
                    self.unify(first, second)
            case _:  # of one of them the type is unknown
                for first, second in zip(leaves(left), leaves(right), strict=False):
                    self.join(first, second)


def leaves(domain: Domain) -> tuple[int, ...]:
    """All numbers in a domain."""
    match domain:
        case FunctionDomain(params=params, result=result):
            return tuple(leaf for item in (*params, result) for leaf in leaves(item))
        case FieldsDomain(fields=fields, plain=plain):
            return (plain, *(leaf for item in fields for leaf in leaves(item)))
        case _:
            return (domain,)


def main_leaf(domain: Domain) -> int:
    """Where a value is, as its virtual device says: of a function its result."""
    while not isinstance(domain, int):
        domain = domain.result if isinstance(domain, FunctionDomain) else domain.plain
    return domain


def place_of(device: VirtualDevice) -> VirtualDevice:
    """A virtual device without its target: the compiler of a value does not decide where the value is."""
    if device.target is None:
        return device
    return VirtualDevice(device.device_type, device.virtual_device_id, None, device.memory_scope)


def _holds_function(type_: Type | None) -> bool:
    match type_:
        case FuncType():
            return True
        case TupleType(fields=fields):
            return any(map(_holds_function, fields))
        case _:
            return False


def _holds_data(type_: Type) -> bool:
    match type_:
        case FuncType():
            return False
        case TupleType(fields=fields):
            return any(map(_holds_data, fields))
        case _:
            return True


def _conflict(left: tuple[Site, ...], right: tuple[Site, ...]) -> DeviceConflictError:
    pairs = (
        (first, second)
        for first, second in product(left, right)
        if VirtualDevice.join(place_of(first.device), place_of(second.device)) is None
    )
    first, second = next(pairs)
    return DeviceConflictError(
        f"a value is put on two devices: {first}, and {second}",
        help="remove one annotation, or put intarsia::device_copy between them",
        sites=(first, second),
    )


def _shown(expr: Expr) -> str:
    match expr:
        case Call(op=Op() as op, args=args):
            return f"on_device of {_shown(args[0])}" if placement_of(expr) is not None else str(op)
        case Var(name=name):
            return f"%{name}"
        case Function():
            return "the result of a function"
        case _:
            return type(expr).__name__
