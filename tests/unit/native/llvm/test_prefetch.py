"""What loops ask memory for, followed through their iterations."""

from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest
from tests.tir_checks import parsed

from intarsia.ir.prim_func import Allocate, Block, For, ForKind, IfThenElse, PrimFunc, Statement
from intarsia.native.llvm.emit_facts import Facts
from intarsia.native.llvm.prefetch import Prefetch, prefetches

KIB = 1024
LINE = 64

PRODUCT = """def prim @f(
  a: Buffer[(32, 96), float32], b: Buffer[(5, 96, 48), float32], c: Buffer[(32, 240), float32]
) {
  for p in 5 {
    for t in 8 {
      alloc acc: Buffer[(4, 48), float32, register] {
        for unrolled i in 4 { for vectorized j in 48 { acc[i, j] = 0.0f32; } }
        for k in 96 {
          for unrolled i in 4 { for vectorized j in 48 {
            acc[i, j] = acc[i, j] + a[t * 4 + i, k] * b[p, k, j];
          } }
        }
        for unrolled i in 4 { for vectorized j in 48 { c[t * 4 + i, p * 48 + j] = acc[i, j]; } }
      }
    }
  }
}"""

REST = """def prim @f(
  a: Buffer[(20, 64), float32], b: Buffer[(6, 64, 32), float32], c: Buffer[(20, 192), float32]
) {
  for parallel p in 6 {
    for t in 3 { for k in 64 { for vectorized j in 32 { c[t, j] = c[t, j] + a[t, k] * b[p, k, j]; } } }
    for k in 64 { for vectorized j in 32 { c[3, j] = c[3, j] + a[3, k] * b[p, k, j]; } }
  }
}"""

WINDOWS = """def prim @f(b: Buffer[(8, 4, 3, 3, 16, 16), float32], c: Buffer[(56, 128), float32]) {
  for o in 4 {
    for y in 14 {
      for n in 4 { for h in 3 { for w in 3 { for i in 16 {
        for vectorized j in 16 { c[y, j] = c[y, j] + b[o * 2, n, h, w, i, j]; }
        for vectorized j in 16 { c[y, 16 + j] = c[y, 16 + j] + b[o * 2 + 1, n, h, w, i, j]; }
      } } } }
    }
  }
}"""

STREAM = """def prim @f(b: Buffer[(8, 64, 16), float32], c: Buffer[(8, 16), float32]) {
  for p in 8 { for k in 64 { for vectorized j in 16 { c[p, j] = c[p, j] + b[p, k, j]; } } }
}"""

AGAIN = """def prim @f(b: Buffer[(4, 64, 16), float32], c: Buffer[(8, 16), float32]) {
  for y in 3 { for p in 4 { for t in 4 { for k in 64 {
    for vectorized j in 16 { c[t, j] = c[t, j] + b[p, k, j]; }
  } } } }
}"""


def planned(prim_func: PrimFunc, second_cache: int) -> dict[int, tuple[Prefetch, ...]]:
    return prefetches(prim_func, Facts(prim_func), ("b",), second_cache)


def asked(text: str, second_cache: int = 256 * KIB) -> dict[int, Counter[int]]:
    """How often each line is asked for, by the outermost counter."""
    prim_func = parsed(text)
    plan = planned(prim_func, second_cache)
    found: dict[int, Counter[int]] = defaultdict(Counter)
    for outermost, address, lines in requests(prim_func.body, plan, {}):
        found[outermost].update(address // LINE + line for line in range(lines))
    return found


def requests(
    statement: Statement, plan: dict[int, tuple[Prefetch, ...]], env: dict[str, int]
) -> Iterator[tuple[int, int, int]]:
    match statement:
        case Block():
            for inner in statement.statements:
                yield from requests(inner, plan, env)
        case Allocate():
            yield from requests(statement.body, plan, env)
        case IfThenElse():
            raise AssertionError("none of these has branches")
        case For(kind=ForKind.UNROLLED | ForKind.VECTORIZED):
            return  # these ask for nothing
        case For():
            for value in range(statement.extent):
                inside = {**env, statement.var.name: value}
                for each in plan.get(id(statement), ()):
                    address = each.offset + sum(inside[name] * step for name, step in each.terms)
                    yield next(iter(inside.values())), address, each.lines
                yield from requests(statement.body, plan, inside)


@pytest.mark.parametrize(
    ("text", "panel", "most"), [(PRODUCT, 96 * 48 * 4, 3), (REST, 64 * 32 * 4, 3), (WINDOWS, 2 * 36864, 5)]
)
def test_turns_of_a_panel_ask_for_the_next_one(text: str, panel: int, most: int) -> None:
    lines = panel // LINE
    found = asked(text)
    for number, requested in found.items():
        following = set(range((number + 1) * lines, (number + 2) * lines))
        assert following <= requested.keys(), number
        assert len(requested.keys() - following) <= lines // 4  # shares are rounded up
        assert max(requested.values()) <= most
    assert len(found) > 3


def test_each_turn_asks_for_its_share() -> None:
    prim_func = parsed(PRODUCT)
    ((asks,),) = planned(prim_func, 256 * KIB).values()
    assert dict(asks.terms) == {"p": 96 * 48 * 4, "t": 96 * 24, "k": 24}  # 48 columns by 8 turns
    assert (asks.offset, asks.lines) == (96 * 48 * 4, 1)


def test_what_is_read_once_is_asked_for_some_way_ahead() -> None:
    found = asked(STREAM)
    everything = Counter[int]()
    for requested in found.values():
        everything += requested
    assert everything == Counter(range(8 * KIB // LINE, 8 * KIB // LINE + 8 * 64))


def test_what_stays_in_the_cache_is_not_asked_for_again() -> None:
    assert not asked(AGAIN, second_cache=64 * KIB)
    assert asked(AGAIN, second_cache=16 * KIB)


def test_panels_that_would_displace_each_other_are_not_asked_for() -> None:
    assert not asked(PRODUCT, second_cache=32 * KIB)


def test_lines_are_not_asked_for_by_dozens_of_turns() -> None:
    many = (
        PRODUCT.replace("for t in 8", "for t in 80")
        .replace("(32, 96)", "(320, 96)")
        .replace("(32, 240)", "(320, 240)")
    )
    assert not asked(many)


def test_nothing_is_asked_for_where_nothing_is_far() -> None:
    prim_func = parsed(PRODUCT)
    assert prefetches(prim_func, Facts(prim_func), (), 256 * KIB) == {}
