"""Which domain each value of a program is in, and in which domains it is needed.

What a copy takes is a value that is computed, or a field of one: a `Source`. Annotations, and fields of
tuples that are written out, are seen through; constants and absent arguments are everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from intarsia.ir import Constant, Expr, Tuple, TupleType, Type
from intarsia.passes.devices.device_domains import (
    DeviceDomains,
    Domain,
    FieldsDomain,
    FunctionDomain,
    Site,
)
from intarsia.target import UNCONSTRAINED

Path: TypeAlias = tuple[int, ...]
Leaf: TypeAlias = tuple[Expr, Path]
"""A tensor: the expression that computes it, and which field it is."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value comes from.

    Attributes:
        base: The expression that computes it.
        path: Index of the field, of the field of that field, and so on.
        is_border: Whether an annotation stands between that says nothing of its users.
    """

    base: Expr
    path: Path = ()
    is_border: bool = False


@dataclass(frozen=True, slots=True)
class Need:
    """A domain in which a value is needed.

    Attributes:
        domain: Domain that the value is needed in.
        is_border: Whether an annotation stands between that says nothing of its users.
        number: Number of needs met before it, in the order of evaluation.
    """

    domain: int
    is_border: bool
    number: int


@dataclass(slots=True)
class DeviceFlow:
    """The values of a program, their domains, and the needs for them.

    Attributes:
        domains: All domains.
        of: The domain of each expression that computes something, binds a value, or holds one in place.
        sources: Source of the value of each expression.
        open_tuples: Tuples that are nowhere: each user gets the fields it needs.
        needs: For each tensor, where it is needed.
        views: Expressions that hold the value of another one in a place of their own.
        callees: For each call of a function, where it takes its arguments.
        weak: Domains whose device was chosen for them, which their users need not follow.
        aliases: For each name, let or result the pairs of the domain of a value that it stands for (several,
            where it stands for a tuple) and its domain: one place, unless annotations contradict it.
        branches: Pairs of a domain and that of an If or tuple that gets its value: preferably one place.
        met: Number of needs so far.
    """

    domains: DeviceDomains = field(default_factory=DeviceDomains)
    of: dict[Expr, Domain] = field(default_factory=dict)
    sources: dict[Expr, Source] = field(default_factory=dict)
    open_tuples: set[Expr] = field(default_factory=set)
    needs: dict[Leaf, list[Need]] = field(default_factory=dict)
    views: dict[Expr, Source] = field(default_factory=dict)
    callees: dict[Expr, FunctionDomain] = field(default_factory=dict)
    weak: set[int] = field(default_factory=set)
    aliases: list[list[tuple[int, int]]] = field(default_factory=list)
    branches: list[tuple[int, int]] = field(default_factory=list)
    met: int = 0

    def domain_of(self, source: Source) -> Domain:
        """The domain of a value that is computed."""
        domain = self.of[source.base]
        for index in source.path:
            if isinstance(domain, FieldsDomain):
                domain = domain.fields[index]
        return domain

    def field(self, source: Source, index: int) -> Source:
        """Where a field of a tuple comes from."""
        base = source.base
        if base in self.open_tuples and not source.path:
            assert isinstance(base, Tuple)
            inner = self.sources[base.fields[index]]
            return replace(inner, is_border=inner.is_border or source.is_border)
        return replace(source, path=(*source.path, index))

    def need(self, source: Source, there: Domain) -> None:
        """A value is needed in a domain; it gets there by a copy if it is elsewhere.

        Raises:
            DeviceConflictError: It is a function, which takes its arguments elsewhere.
        """
        if source.base in self.open_tuples:
            assert isinstance(source.base, Tuple)
            for index in range(len(source.base.fields)):
                place = there.fields[index] if isinstance(there, FieldsDomain) else there
                self.need(self.field(source, index), place)
        elif not is_everywhere(source.base):
            self._need_computed(source, self.domain_of(source), there)

    def _need_computed(self, source: Source, here: Domain, there: Domain) -> None:
        match here, there:
            case int(), int():
                for path in leaf_paths(type_at(source.base.checked_type, source.path)):
                    needs = self.needs.setdefault((source.base, (*source.path, *path)), [])
                    needs.append(Need(there, source.is_border, self.met))
                    self.met += 1
            case FieldsDomain(), _:
                for index, inner in enumerate(here.fields):
                    place = there.fields[index] if isinstance(there, FieldsDomain) else there
                    self._need_computed(replace(source, path=(*source.path, index)), inner, place)
            case FunctionDomain(), FunctionDomain():
                self.domains.unify(here, there)
            case _:
                return  # an operator that is given a function does not need it anywhere

    def follow(self, source: Source, there: Domain, owner: str, *, is_branch: bool = False) -> None:
        """A value is passed on: it is needed where the name, let, If or result is that stands for it.

        Args:
            source: The value.
            there: Domain of what stands for it.
            owner: Name of the global function.
            is_branch: Whether it is a branch of an If, which may be elsewhere where that takes fewer copies.
        """
        pairs = list(self._passed_on(source, there, owner))
        if is_branch:
            self.branches += pairs
        else:
            self.aliases.append(pairs)

    def _passed_on(self, source: Source, there: Domain, owner: str) -> Iterator[tuple[int, int]]:
        base = source.base
        if base in self.open_tuples:
            assert isinstance(base, Tuple)
            for index in range(len(base.fields)):
                field_domain = there.fields[index] if isinstance(there, FieldsDomain) else there
                yield from self._passed_on(self.field(source, index), field_domain, owner)
        elif is_everywhere(base):
            if base.virtual_device != UNCONSTRAINED:
                self.domains.constrain(there, Site(base.virtual_device, base, owner), is_required=False)
        else:
            match self.domain_of(source), there:
                case int() as here, int():
                    yield here, there
                case FieldsDomain(plain=here), FieldsDomain(plain=plain_there):
                    yield here, plain_there
                case _:
                    pass
            self.need(replace(source, is_border=False), there)

    def join_aliases(self) -> None:
        """Make one domain of each name and its value; where annotations contradict it, the cut decides."""
        for pairs in self.aliases:
            if self.domains.can_join({domain for pair in pairs for domain in pair}):
                for here, there in pairs:
                    self.domains.join(here, there)
            else:
                self.branches += pairs


def is_everywhere(expr: Expr) -> bool:
    """Whether a value costs nothing on any device: a constant, or the absent value."""
    return isinstance(expr, Constant) or (isinstance(expr, Tuple) and not expr.fields)


def type_at(type_: Type | None, path: Path) -> Type | None:
    """The type of a field."""
    for index in path:
        type_ = type_.fields[index] if isinstance(type_, TupleType) else None
    return type_


def leaf_paths(type_: Type | None) -> tuple[Path, ...]:
    """The tensors in a value of a type; one, where the type is unknown."""
    if not isinstance(type_, TupleType):
        return ((),)
    return tuple((index, *path) for index, item in enumerate(type_.fields) for path in leaf_paths(item))
