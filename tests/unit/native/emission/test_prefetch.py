"""What loops ask memory for, followed through their iterations."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

import pytest
from tests.tir_checks import parsed

from intarsia.ir.prim_func import Allocate, Block, For, ForKind, IfThenElse, PrimFunc, Statement
from intarsia.native.emission.facts import Facts
from intarsia.native.emission.prefetch import Prefetch, prefetches

KIB = 1024
LINE = 64

PRODUCT = """def prim @f(
  a: Buffer[(40, 96), float32], b: Buffer[(5, 96, 48), float32], c: Buffer[(40, 240), float32]
) {
  for p in 5 {
    for t in 8 {
      alloc acc: Buffer[(5, 48), float32, register] {
        for unrolled i in 5 { for vectorized j in 48 { acc[i, j] = 0.0f32; } }
        for k in 96 {
          for unrolled i in 5 { for vectorized j in 48 {
            acc[i, j] = acc[i, j] + a[t * 5 + i, k] * b[p, k, j];
          } }
        }
        for unrolled i in 5 { for vectorized j in 48 { c[t * 5 + i, p * 48 + j] = acc[i, j]; } }
      }
    }
  }
}"""

REST = """def prim @f(
  a: Buffer[(40, 64), float32], b: Buffer[(6, 64, 32), float32], c: Buffer[(40, 192), float32]
) {
  for parallel p in 6 {
    for t in 3 { for k in 64 { for unrolled i in 10 {
      for vectorized j in 32 { c[t * 10 + i, j] = c[t * 10 + i, j] + a[t * 10 + i, k] * b[p, k, j]; }
    } } }
    for k in 64 { for unrolled i in 10 {
      for vectorized j in 32 { c[30 + i, j] = c[30 + i, j] + a[30 + i, k] * b[p, k, j]; }
    } }
  }
}"""

WINDOWS = """def prim @f(b: Buffer[(8, 4, 3, 3, 16, 16), float32], c: Buffer[(56, 128), float32]) {
  for o in 4 {
    for y in 14 {
      for n in 4 { for h in 3 { for w in 3 { for i in 16 { for unrolled x in 4 {
        for vectorized j in 16 { c[y * 4 + x, j] = c[y * 4 + x, j] + b[o * 2, n, h, w, i, j]; }
        for vectorized j in 16 {
          c[y * 4 + x, 16 + j] = c[y * 4 + x, 16 + j] + b[o * 2 + 1, n, h, w, i, j];
        }
      } } } } }
    }
  }
}"""

STREAM = """def prim @f(b: Buffer[(8, 64, 16), float32], c: Buffer[(8, 16), float32]) {
  for p in 8 { for k in 64 { for vectorized j in 16 { c[p, j] = c[p, j] + b[p, k, j]; } } }
}"""

AGAIN = """def prim @f(b: Buffer[(4, 64, 16), float32], c: Buffer[(48, 16), float32]) {
  for y in 3 { for p in 4 { for t in 4 { for k in 64 { for unrolled i in 12 {
    for vectorized j in 16 { c[t * 12 + i, j] = c[t * 12 + i, j] + b[p, k, j]; }
  } } } } }
}"""

CHUNKS = """def prim @f(b: Buffer[(3, 6, 64, 16), float32], c: Buffer[(48, 16), float32]) {
  for o in 2 { for q in 3 { for p in 3 { for t in 4 { for k in 64 { for unrolled i in 12 {
    for vectorized j in 16 { c[t * 12 + i, j] = c[t * 12 + i, j] + b[q, o * 3 + p, k, j]; }
  } } } } } }
}"""


def planned(prim_func: PrimFunc, second_cache: int) -> dict[int, tuple[Prefetch, ...]]:
    return prefetches(prim_func, Facts(prim_func), ("b",), second_cache)


def asked(text: str, second_cache: int = 256 * KIB) -> dict[int, Counter[int]]:
    """How often each line is asked for, by the outermost counter."""
    prim_func = parsed(text)
    plan = planned(prim_func, second_cache)
    found: dict[int, Counter[int]] = defaultdict(Counter)
    for counters, address, pairs in requests(prim_func.body, plan, {}):
        found[counters[0]].update(address // LINE + line for line in range(2 * pairs))
    return found


def requests(
    statement: Statement, plan: dict[int, tuple[Prefetch, ...]], env: dict[str, int]
) -> Iterator[tuple[tuple[int, ...], int, int]]:
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
                    if each.carry is not None and inside[each.carry[0]] == each.carry[1]:
                        address += each.carry[2]
                    yield tuple(inside.values()), address, each.pairs
                yield from requests(statement.body, plan, inside)


@pytest.mark.parametrize(
    ("text", "panel", "most"), [(PRODUCT, 96 * 48 * 4, 6), (REST, 64 * 32 * 4, 4), (WINDOWS, 2 * 36864, 5)]
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
    assert (asks.offset, asks.pairs, asks.carry) == (96 * 48 * 4, 1, None)


def test_the_last_panel_of_a_chunk_asks_for_the_first_one_of_the_next() -> None:
    prim_func = parsed(CHUNKS)
    plan = planned(prim_func, 256 * KIB)
    found: dict[tuple[int, ...], set[int]] = defaultdict(set)
    for counters, address, pairs in requests(prim_func.body, plan, {}):
        found[counters[:3]].update(address // LINE + line for line in range(2 * pairs))
    order = sorted(found)
    first = {panel: (panel[1] * 6 + panel[0] * 3 + panel[2]) * 64 for panel in order}
    for panel, following in pairwise(order):
        if panel[0] == following[0]:
            assert set(range(first[following], first[following] + 64)) <= found[panel]
    assert len(order) == 18


def test_panels_that_few_rows_use_are_not_asked_for() -> None:
    assert asked(CHUNKS)
    assert not asked(CHUNKS.replace("unrolled i in 12", "unrolled i in 8"))


def test_what_is_read_once_is_asked_for_some_way_ahead() -> None:
    found = asked(STREAM)
    everything = Counter[int]()
    for requested in found.values():
        everything += requested
    assert set(everything) == set(range(8 * KIB // LINE, 8 * KIB // LINE + 8 * 64 + 1))  # lines come in pairs


def test_what_stays_in_the_cache_is_not_asked_for_again() -> None:
    assert not asked(AGAIN, second_cache=64 * KIB)
    assert asked(AGAIN, second_cache=16 * KIB)


def test_panels_that_would_displace_each_other_are_not_asked_for() -> None:
    assert not asked(PRODUCT, second_cache=32 * KIB)


def test_lines_are_not_asked_for_by_dozens_of_turns() -> None:
    many = (
        PRODUCT.replace("for t in 8", "for t in 80")
        .replace("(40, 96)", "(400, 96)")
        .replace("(40, 240)", "(400, 240)")
    )
    assert not asked(many)


def test_nothing_is_asked_for_where_nothing_is_far() -> None:
    prim_func = parsed(PRODUCT)
    assert prefetches(prim_func, Facts(prim_func), (), 256 * KIB) == {}
