import pytest
from tests.ir_programs import BOOL, add, branch, chain, ones, relu, var

from intarsia.ir import Attrs, Call, Expr, Function, GlobalVar, Let, Op, Tuple
from intarsia.ir.scope import Scope, is_atom, place


def test_a_shared_expression_is_placed_around_its_uses() -> None:
    x, c = var("x"), var("c", BOOL)
    both, one = relu(x), relu(x)
    chosen = branch(c, add(both, one), both)
    placed = place(chosen)
    assert placed.members[placed.outermost] == [both, chosen]
    assert placed.members[placed.inner[chosen, 1]] == [one, chosen.true_branch]
    assert placed.members[placed.inner[chosen, 2]] == []


def test_an_expression_used_in_nested_branches_only_is_placed_there() -> None:
    c, shared = var("c", BOOL), relu(var())
    inner = branch(c, shared, relu(shared))
    outer = branch(c, inner, ones())
    placed = place(outer)
    assert placed.members[placed.inner[outer, 1]] == [shared, inner]


def test_function_bodies_and_lets_are_scopes() -> None:
    x, y = var("x"), var("y")
    let = Let(y, relu(x), relu(y))
    function = Function((x,), let)
    placed = place(function)
    body = placed.inner[function, 1]
    assert placed.members[placed.outermost] == [function]
    assert placed.members[body] == [let.value, let]
    assert placed.members[placed.inner[let, 2]] == [let.body]
    assert (body.depth, body.parent, body.root) == (1, placed.outermost, let)


def test_what_a_function_captures_is_placed_outside_if_it_is_used_there() -> None:
    x, y = var("x"), var("y")
    outside = relu(x)
    function = Function((y,), add(y, outside))
    call = Call(function, (outside,))
    placed = place(call)
    assert placed.members[placed.outermost] == [outside, function, call]
    assert placed.members[placed.inner[function, 1]] == [function.body]


def test_common_scope() -> None:
    top = Scope(ones(), None, 0)
    left, right = Scope(ones(), top, 1), Scope(ones(), top, 1)
    below = Scope(ones(), left, 2)
    assert below.common(right) is top
    assert below.common(left) is left
    assert left.common(below) is left


@pytest.mark.parametrize("expr", [var(), GlobalVar("f"), ones(), Op("Relu"), Tuple(())])
def test_atoms(expr: Expr) -> None:
    assert is_atom(expr)
    assert list(place(expr).members.values()) == [[]]


def test_compound_expressions_are_no_atoms() -> None:
    compound: list[Expr] = [relu(var()), Tuple((var(),)), Function((), Tuple(()))]
    assert not any(is_atom(expr) for expr in compound)


class TestBodiesOfOperators:
    """A body is evaluated often; what does not depend on its variables is evaluated around the operator."""

    def test_what_depends_on_no_variable_of_the_body_is_outside(self) -> None:
        x, state = var("x"), var("s")
        before, after = relu(x), add(state, x)
        body = Function((state,), add(after, before))
        loop = Call(Op("Loop"), (x, body))
        placed = place(loop)
        assert placed.members[placed.outermost] == [before, body, loop]
        assert placed.members[placed.inner[body, 1]] == [after, body.body]

    def test_each_body_keeps_what_depends_on_its_variables(self) -> None:
        x, s, t = var("x"), var("s"), var("t")
        outside, between, inside = relu(x), relu(s), relu(t)
        inner = Function((t,), add(add(outside, between), inside))
        inner_loop = Call(Op("Scan"), (inner,))
        outer = Function((s,), inner_loop)
        loop = Call(Op("Loop"), (x, outer))
        placed = place(loop)
        assert placed.members[placed.outermost] == [outside, outer, loop]
        assert isinstance(inner.body, Call)
        assert placed.members[placed.inner[outer, 1]] == [between, inner.body.args[0], inner, inner_loop]
        assert placed.members[placed.inner[inner, 1]] == [inside, inner.body]

    def test_a_loop_in_a_branch_leaves_it_in_the_branch(self) -> None:
        x, c, s = var("x"), var("c", BOOL), var("s")
        before = relu(x)
        body = Function((s,), add(s, before))
        loop = Call(Op("Loop"), (x, body))
        chosen = branch(c, loop, x)
        placed = place(chosen)
        assert placed.members[placed.inner[chosen, 1]] == [before, body, loop]

    def test_a_branch_in_a_loop_lets_it_go(self) -> None:
        x, c, s = var("x"), var("c", BOOL), var("s")
        before = relu(x)
        chosen = branch(c, add(s, before), s)
        loop = Call(Op("Loop"), (x, Function((s,), chosen)))
        placed = place(loop)
        assert placed.members[placed.outermost][0] is before

    def test_a_let_goes_with_its_variable(self) -> None:
        x, y, s = var("x"), var("y"), var("s")
        let = Let(y, relu(x), relu(y))
        body = Function((s,), add(s, let))
        loop = Call(Op("Loop"), (x, body))
        placed = place(loop)
        assert placed.members[placed.outermost] == [let.value, let, body, loop]
        assert placed.members[placed.inner[let, 2]] == [let.body]
        stays = Let(y, relu(s), add(relu(x), relu(y)))
        body = Function((s,), stays)
        placed = place(Call(Op("Loop"), (x, body)))
        assert isinstance(stays.body, Call)
        assert stays.body.args[0] in placed.members[placed.outermost]
        assert placed.members[placed.inner[body, 1]] == [stays.value, stays]
        assert placed.members[placed.inner[stays, 2]] == [stays.body.args[1], stays.body]

    @pytest.mark.parametrize("attrs", [Attrs(), Attrs({"Compiler": "any"})])
    def test_functions_that_are_called_keep_what_only_they_use(self, attrs: Attrs) -> None:
        x, y, s = var("x"), var("y"), var("s")
        kept = relu(ones())
        called = Function((y,), add(y, kept), attrs)
        body = Function((s,), Call(called, (s,)))
        placed = place(Call(Op("Loop"), (x, body)))
        assert placed.members[placed.inner[called, 1]] == [kept, called.body]
        assert called in placed.members[placed.outermost]

    def test_a_marked_body_is_closed(self) -> None:
        x, s = var("x"), var("s")
        kept = relu(ones())
        body = Function((s,), add(s, kept), Attrs({"Primitive": 1}))
        placed = place(Call(Op("Loop"), (x, body)))
        assert placed.members[placed.inner[body, 1]] == [kept, body.body]

    def test_long_bodies(self, length: int) -> None:
        x, s = var("x"), var("s")
        outside, inside = chain(length, x), chain(length, s)
        body = Function((s,), add(outside, inside))
        placed = place(Call(Op("Loop"), (x, body)))
        assert len(placed.members[placed.outermost]) == length + 2
        assert len(placed.members[placed.inner[body, 1]]) == length + 1

    @pytest.mark.slow
    def test_deeply_nested_bodies(self) -> None:
        x = var("x")
        expr: Expr = relu(x)
        for _ in range(5_000):
            s = var("s")
            expr = Call(Op("Loop"), (x, Function((s,), add(s, expr))))
        placed = place(expr)
        assert len(placed.members[placed.outermost]) == 10_001
