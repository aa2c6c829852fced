from tests.tir_checks import checked, in_module, lines_of, parsed

from intarsia.ir import PrimFunc
from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.prim_func import For, IfThenElse
from intarsia.native.tir import LoopPartition


def guards(function: PrimFunc) -> int:
    return sum(isinstance(visit.statement, IfThenElse) for visit in walk(function.body))


def partitioned(text: str, made: LoopPartition | None = None) -> PrimFunc:
    return checked(made or LoopPartition(), parsed(text), is_idempotent=False)


WINDOW = """def prim @f(x: Buffer[(20,), float32], y: Buffer[(20,), float32]) {{
  for {kind} i in 20 {{
    y[i] = 0f32;
    for k in 5 {{
      if 0 <= i + k - 2 and i + k - 2 < 20 {{ y[i] = y[i] + x[i + k - 2]; }}
    }}
  }}
}}"""


def test_a_padded_window() -> None:
    after = partitioned(WINDOW.format(kind="serial"))
    assert guards(after) == 0
    extents = [v.statement.extent for v in walk(after.body) if isinstance(v.statement, For) and not v.depth]
    assert 16 in extents


def test_a_padded_window_in_a_parallel_loop() -> None:
    after = partitioned(WINDOW.format(kind="parallel"))
    assert isinstance(after.body, For)
    assert after.body.extent == 20
    assert isinstance(after.body.body, IfThenElse)
    text = "\n".join(lines_of(after))
    assert "if 1 < i and i < 18 {" in text


SPLIT_TWICE = """def prim @f(x: Buffer[(10, 7), float32], y: Buffer[(10, 7), float32]) {
  for io in 3 { for jo in 2 { for ii in 4 { for vectorized ji in 4 {
    if io * 4 + ii < 10 and jo * 4 + ji < 7 { y[io * 4 + ii, jo * 4 + ji] = x[io * 4 + ii, jo * 4 + ji]; }
  } } } }
}"""


def test_two_splits_with_a_rest() -> None:
    after = partitioned(SPLIT_TWICE)
    assert guards(after) == 0
    assert "for vectorized ji in 3 {" in "\n".join(lines_of(after))


def test_a_fused_loop_is_cut_by_its_remainder() -> None:
    after = partitioned(
        """def prim @f(x: Buffer[(60, 9), float32], y: Buffer[(60, 9), float32]) {
          for parallel f in 540 {
            y[f floordiv 9, f mod 9] = 0f32;
            for k in 3 {
              if 0 <= f mod 9 + k - 1 and f mod 9 + k - 1 < 9 {
                y[f floordiv 9, f mod 9] = y[f floordiv 9, f mod 9] + x[f floordiv 9, f mod 9 + k - 1];
              }
            }
          }
        }"""
    )
    assert lines_of(after)[1] == "  if 0 < f mod 9 and f mod 9 < 8 {"
    inner = [v for v in walk(after.body) if isinstance(v.statement, IfThenElse) and v.depth > 2]
    assert inner == []


def test_a_select_counts_as_a_guard() -> None:
    after = partitioned(
        """def prim @f(x: Buffer[(9,), float32], y: Buffer[(10,), float32]) {
          for i in 10 { y[i] = select(0 < i, x[max(i - 1, 0)], 5f32); }
        }"""
    )
    assert lines_of(after) == [
        "y[0] = 5.0f32;",
        "for i in 9 {",
        "  y[i + 1] = x[i];",
        "}",
    ]


def test_unrolled_loops_are_only_shortened() -> None:
    after = partitioned(
        """def prim @f(y: Buffer[(9,), float32]) {
          for unrolled i in 9 { if 2 < i and i < 7 { y[i] = 1f32; } }
          for unrolled i in 9 { if i < 7 { y[i] = 2f32; } else { y[i] = 3f32; } }
        }"""
    )
    assert lines_of(after) == [
        "for unrolled i in 4 {",
        "  y[i + 3] = 1.0f32;",
        "}",
        "for unrolled i in 9 {",
        "  if i < 7 {",
        "    y[i] = 2.0f32;",
        "  } else {",
        "    y[i] = 3.0f32;",
        "  }",
        "}",
    ]


def test_vectorised_loops_are_cut_where_guards_would_keep_them_from_vectors() -> None:
    after = partitioned(
        """def prim @f(x: Buffer[(9,), float32], y: Buffer[(9,), float32]) {
          for vectorized i in 9 { if 0 < i { y[i] = x[i - 1]; } else { y[i] = 0f32; } }
          for vectorized i in 9 { y[i] = select(0 < i, 1f32, 2f32); }
        }"""
    )
    assert lines_of(after) == [
        "y[0] = 0.0f32;",
        "for vectorized i in 8 {",
        "  y[i + 1] = x[i];",
        "}",
        "for vectorized i in 9 {",
        "  y[i] = select(0 < i, 1.0f32, 2.0f32);",
        "}",
    ]


def test_growth_is_limited() -> None:
    text = WINDOW.format(kind="serial")
    mod = in_module(parsed(text))
    assert LoopPartition(max_statements=2)(mod) is mod
    assert guards(partitioned(text, LoopPartition(max_statements=4))) > 0


def test_conditions_on_data_stay() -> None:
    text = """def prim @f(n: Buffer[(4,), int64], y: Buffer[(4,), float32]) {
      for i in 4 { if n[i] < i { y[i] = 1f32; } }
    }"""
    mod = in_module(parsed(text))
    assert LoopPartition()(mod) is mod


def test_buffers_of_copies_have_names_of_their_own() -> None:
    after = partitioned(
        """def prim @f(x: Buffer[(9,), float32], y: Buffer[(9,), float32]) {
          for i in 9 { alloc t: Buffer[(), float32] {
            t[] = x[i];
            if 0 < i { t[] = t[] + x[i - 1]; }
            y[i] = t[];
          } }
        }"""
    )
    assert [line.strip() for line in lines_of(after) if "alloc" in line] == [
        "alloc t_1: Buffer[(), float32] {",
        "alloc t: Buffer[(), float32] {",
    ]


def test_many_equal_parts_are_all_cut() -> None:
    """A Concat of many tensors: each part has one store, so that no budget is needed."""
    parts = 100

    def chosen(first: int, behind: int) -> str:
        if behind - first == 1:
            return f"y[i] = x[i - {first * 8}];"
        middle = (first + behind) // 2
        lower, upper = chosen(first, middle), chosen(middle, behind)
        return f"if i < {middle * 8} {{ {lower} }} else {{ {upper} }}"

    text = f"""def prim @f(x: Buffer[(8,), float32], y: Buffer[({parts * 8},), float32]) {{
      for i in {parts * 8} {{ {chosen(0, parts)} }}
    }}"""
    after = partitioned(text, LoopPartition(max_statements=parts))
    assert guards(after) == 0
    entered = [visit.statement for visit in walk(after.body) if visit.event is Event.ENTER]
    assert [loop.extent for loop in entered if isinstance(loop, For)] == [8] * parts
