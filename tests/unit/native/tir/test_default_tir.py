import pytest
from tests.tir_checks import checked, in_module, lines_of, parsed

from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import For, ForKind, IfThenElse
from intarsia.native.tir import default_tir
from intarsia.transform import get_pass, load_pass_sequence

GEMM = """def prim @f(
  a: Buffer[(20, 7), float32], b: Buffer[(7, 21), float32], c: Buffer[(20, 21), float32]
) {
  for parallel io in 4 { for jo in 2 {
    for unrolled i in 6 { for vectorized j in 16 {
      if io * 6 + i < 20 and jo * 16 + j < 21 { c[io * 6 + i, jo * 16 + j] = 0f32; }
    } }
    for k in 7 { for unrolled i in 6 { for vectorized j in 16 {
      if io * 6 + i < 20 and jo * 16 + j < 21 {
        c[io * 6 + i, jo * 16 + j] = c[io * 6 + i, jo * 16 + j] + a[io * 6 + i, k] * b[k, jo * 16 + j];
      }
    } } }
  } }
}"""

CONV = """def prim @f(
  x: Buffer[(3, 8, 8), float32], w: Buffer[(3, 3, 3, 8), float32], y: Buffer[(8, 8, 8), float32]
) {
  for parallel f in 32 { for wi in 2 { for vectorized o in 8 {
    alloc t: Buffer[(), float32] {
      t[] = 0f32;
      for c in 3 { for kh in 3 { for kw in 3 {
        if 0 <= f floordiv 4 + kh - 1 and f floordiv 4 + kh - 1 < 8 {
          if 0 <= f mod 4 * 2 + wi + kw - 1 and f mod 4 * 2 + wi + kw - 1 < 8 {
            t[] = t[] + w[c, kh, kw, o] * x[c, f floordiv 4 + kh - 1, f mod 4 * 2 + wi + kw - 1];
          }
        }
      } } }
      y[f floordiv 4, f mod 4 * 2 + wi, o] = t[];
    }
  } } }
}"""


@pytest.mark.parametrize("text", [GEMM, CONV], ids=["gemm", "conv"])
def test_hot_loops_have_vectors_registers_and_no_guards(text: str) -> None:
    after = checked(default_tir(32, 16), parsed(text), is_idempotent=False)
    around: list[For] = []
    for visit in walk(after.body):
        del around[visit.depth :]
        around.append(visit.statement)  # type: ignore[arg-type]  # loops are looked for below
        if isinstance(visit.statement, IfThenElse):
            kinds = [one.kind for one in around if isinstance(one, For)]
            assert kinds[:1] == [ForKind.PARALLEL]
            assert len(kinds) == 1, "a guard in an inner loop"
    lines = "\n".join(lines_of(after))
    assert "register] {" in lines
    assert "vectorized" in lines
    assert "not_vectorized" not in str(in_module(after))


def test_the_sequence_has_a_name() -> None:
    named = load_pass_sequence("default_tir")
    assert named.info.name == "default_tir"
    assert named.passes == default_tir().passes


@pytest.mark.parametrize(
    "name",
    [
        *("Simplify", "LoopPartition", "VectorizeLoop", "MarkSmallLoops", "RegisterPromotion"),
        *("ResultStorage", "StorageRewrite", "UnrollLoop"),
    ],
)
def test_passes_have_names(name: str) -> None:
    assert get_pass(name).info.name == name
