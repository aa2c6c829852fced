"""The rules of GPU kernels: each planted fault has its complaint."""

import pytest

from intarsia.ir import structural_equal
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.ir.verify import verify
from intarsia.support.errors import VerifyError

HEAD = "def prim @f(x: Buffer[(4, 8), float32], y: Buffer[(4, 8), float32]) {"
REVERSED_ROWS = f"""{HEAD}
  for block b in 4 {{
    alloc row: Buffer[(8,), float32, shared] {{
      for thread t in 8 {{
        row[t] = x[b, t];
        barrier;
        y[b, t] = row[7 - t];
      }}
    }}
  }}
}}
"""


def test_a_kernel_prints_and_reads_back() -> None:
    mod = parse_module(REVERSED_ROWS)
    verify(mod)
    assert print_module(mod).text.strip().endswith(REVERSED_ROWS.strip())
    assert structural_equal(parse_module(print_module(mod).text), mod)


def test_a_barrier_counts_in_structural_equality() -> None:
    without = REVERSED_ROWS.replace("barrier;", "")
    assert not structural_equal(parse_module(without), parse_module(REVERSED_ROWS))


def test_names_of_the_new_words_are_quoted() -> None:
    text = 'def prim @f("barrier": Buffer[(4,), float32]) {\n'
    text += '  for "thread" in 4 {\n    "barrier"["thread"] = 0.0f32;\n  }\n}\n'
    mod = parse_module(text)
    verify(mod)
    assert text.strip() in print_module(mod).text


THREADS = "for thread t in 8 { "
STORE = "y[0, t] = 0.0f32;"
FAULTS = {
    "a loop over threads stands elsewhere": f"for thread t in 8 {{ {STORE} }}",
    "a barrier stands outside": "barrier;",
    "is shared, and stands elsewhere": "alloc s: Buffer[(8,), float32, shared] { s[0] = 0.0f32; }",
    "a loop over blocks stands inside": f"for i in 2 {{ for block b in 4 {{ {THREADS}{STORE} }} }} }}",
    "is no loop over threads": f"for block b in 4 {{ y[b, 0] = 0.0f32; for thread t in 8 {{ {STORE} }} }}",
    "may decide differently": f"for block b in 4 {{ {THREADS}if t < 3 {{ barrier; }} {STORE} }} }}",
    "a barrier stands in a vectorized loop": (
        f"for block b in 4 {{ for thread t in 8 {{ for vectorized i in 2 {{ barrier; }} {STORE} }} }}"
    ),
    "a parallel loop stands inside a loop over threads": (
        f"for block b in 4 {{ for thread t in 8 {{ for parallel i in 2 {{ {STORE} }} }} }}"
    ),
}


@pytest.mark.parametrize("complaint", FAULTS)
def test_a_fault_has_its_complaint(complaint: str) -> None:
    with pytest.raises(VerifyError, match=complaint):
        verify(parse_module(f"{HEAD}\n{FAULTS[complaint]}\n}}"))


def test_a_guard_that_all_threads_decide_alike_may_hold_a_barrier() -> None:
    verify(parse_module(f"{HEAD} for block b in 4 {{ {THREADS}if b < 3 {{ barrier; }} {STORE} }} }} }}"))
