"""The scenarios that Collage's sub-graphs are known by: partitioning by hand, in our words."""

from __future__ import annotations

import pytest
from tests.collage_programs import assert_program, calls, main_graph, partitioned, program
from tests.pass_checks import assert_same_results

from intarsia.collage.sub_graph import SubGraphConfig
from intarsia.ir import IRModule

ONE = SubGraphConfig(max_exits=1)
TWO = SubGraphConfig(max_exits=2)
MARKS = 'Compiler="reference", target="cpu -toolchain=reference"'

SUM = "def @main(%a: T, %b: T) { Add(%a, %b) }"
CHAIN = "def @main(%x: T) { Exp(Tanh(Sigmoid(Neg(Abs(%x))))) }"


def nodes(mod: IRModule, *positions: int) -> list[int]:
    """Indices of some of the calls of operators, counted from 0."""
    found = calls(main_graph(mod))
    return [found[position] for position in positions]


def diamond() -> IRModule:
    """Relu, two ways over Abs and Neg, and their sum."""
    return program("def @main(%x: T) { %0 = Relu(%x); Add(Abs(%0), Neg(%0)) }")


def test_a_single_operator() -> None:
    mod = program(SUM)
    after = partitioned(mod, nodes(mod, 0), ONE)
    assert_program(
        after,
        f"""def @main(%a: T, %b: T) {{
          %0 = fn (%p0: T, %p1: T) attributes {{{MARKS}}} {{ Add(%p0, %p1) }};
          %0(%a, %b)
        }}""",
    )
    assert_same_results(mod, after)


def test_two_results_only_where_two_are_allowed() -> None:
    mod = program("def @main(%a: T, %b: T, %c: T) { Sub(Add(%a, %b), Add(%b, %c)) }")
    both = nodes(mod, 0, 1)
    assert partitioned(mod, both, ONE) is mod
    after = partitioned(mod, both, TWO)
    assert_program(
        after,
        f"""def @main(%a: T, %b: T, %c: T) {{
          %0 = fn (%p0: T, %p1: T, %p2: T) attributes {{{MARKS}}} {{ (Add(%p0, %p1), Add(%p1, %p2)) }};
          %1 = %0(%a, %b, %c);
          Sub(%1.0, %1.1)
        }}""",
    )
    assert_same_results(mod, after)


CONV = """def @main(%x: Tensor[(1, 2, 4, 4), float32], %w: Tensor[(3, 2, 3, 3), float32],
        %b: Tensor[(3, 1, 1), float32]) {{
          {body}
        }}"""


def test_convolution_with_bias_and_activation() -> None:
    mod = program(CONV.format(body="Relu(Add(Conv(%x, %w), %b))"))
    after = partitioned(mod, calls(main_graph(mod)), ONE)
    body = f"""%0 = fn (%p0: Tensor[(1, 2, 4, 4), float32], %p1: Tensor[(3, 2, 3, 3), float32],
            %p2: Tensor[(3, 1, 1), float32]) attributes {{{MARKS}}} {{ Relu(Add(Conv(%p0, %p1), %p2)) }};
          %0(%x, %w, %b)"""
    assert_program(after, CONV.format(body=body))
    assert_same_results(mod, after)


def test_a_diamond_with_one_result() -> None:
    mod = diamond()
    after = partitioned(mod, nodes(mod, 0, 1, 2, 3), ONE)
    assert_program(
        after,
        f"""def @main(%x: T) {{
          %1 = fn (%p0: T) attributes {{{MARKS}}} {{ %0 = Relu(%p0); Add(Abs(%0), Neg(%0)) }};
          %1(%x)
        }}""",
    )
    assert_same_results(mod, after)


def test_a_diamond_without_its_join_has_two_results() -> None:
    mod = diamond()
    without = nodes(mod, 0, 1, 2)
    assert partitioned(mod, without, ONE) is mod
    after = partitioned(mod, without, TWO)
    assert_program(
        after,
        f"""def @main(%x: T) {{
          %1 = fn (%p0: T) attributes {{{MARKS}}} {{ %0 = Relu(%p0); (Abs(%0), Neg(%0)) }};
          %2 = %1(%x);
          Add(%2.0, %2.1)
        }}""",
    )
    assert_same_results(mod, after)


def test_a_tap_only_where_taps_are_allowed() -> None:
    mod = program("def @main(%x: T) { %0 = Relu(%x); Add(%0, Abs(%0)) }")
    tapped = nodes(mod, 0, 1)
    assert partitioned(mod, tapped, TWO) is mod
    after = partitioned(mod, tapped, SubGraphConfig(max_exits=2, allow_taps=True))
    assert_program(
        after,
        f"""def @main(%x: T) {{
          %1 = fn (%p0: T) attributes {{{MARKS}}} {{ %0 = Relu(%p0); (%0, Abs(%0)) }};
          %2 = %1(%x);
          Add(%2.0, %2.1)
        }}""",
    )
    assert_same_results(mod, after)


@pytest.mark.parametrize("max_exits", [0, 1, 2])
def test_no_cycle_is_made(max_exits: int) -> None:
    mod = program(CHAIN)
    config = SubGraphConfig(max_exits=max_exits, allow_taps=True)
    assert partitioned(mod, nodes(mod, 1, 3), config) is mod
    after = partitioned(mod, nodes(mod, 1, 2, 3), config)
    assert_program(
        after,
        f"""def @main(%x: T) {{
          %0 = fn (%p0: T) attributes {{{MARKS}}} {{ Tanh(Sigmoid(Neg(%p0))) }};
          Exp(%0(Abs(%x)))
        }}""",
    )
    assert_same_results(mod, after)


def test_labels_that_follow_each_other() -> None:
    mod = program(CHAIN)
    one, two, three, four = nodes(mod, 0, 1, 2, 3)
    after = partitioned(mod, [one, two, three, four], ONE, {"a": [one, two], "b": [three]})
    assert_program(
        after,
        f"""def @main(%x: T) {{
          %0 = fn (%p0: T) attributes {{{MARKS}}} {{
            %1 = fn (%q0: T) attributes {{Composite="a"}} {{ Neg(Abs(%q0)) }};
            %2 = fn (%r0: T) attributes {{Composite="b"}} {{ Sigmoid(%r0) }};
            Tanh(%2(%1(%p0)))
          }};
          Exp(%0(%x))
        }}""",
    )
    assert_same_results(mod, after)


def test_a_label_with_a_tap_inside() -> None:
    mod = program("def @main(%x: T) { %0 = Relu(%x); %1 = Abs(%0); Mul(Add(%0, %1), Neg(%1)) }")
    relu, absolute, total, negative, product = (
        calls(main_graph(mod), name)[0] for name in ("Relu", "Abs", "Add", "Neg", "Mul")
    )
    after = partitioned(
        mod, [relu, absolute, total, negative, product], ONE, {"a": [relu, absolute], "b": [total]}
    )
    assert_program(
        after,
        f"""def @main(%x: T) {{
          %0 = fn (%p0: T) attributes {{{MARKS}}} {{
            %1 = fn (%q0: T) attributes {{Composite="a"}} {{
              %3 = Relu(%q0);
              (%3, Abs(%3))
            }};
            %2 = %1(%p0);
            %4 = fn (%r0: T, %r1: T) attributes {{Composite="b"}} {{ Add(%r0, %r1) }};
            %5 = %2.1;
            Mul(%4(%2.0, %5), Neg(%5))
          }};
          %0(%x)
        }}""",
    )
    assert_same_results(mod, after)
