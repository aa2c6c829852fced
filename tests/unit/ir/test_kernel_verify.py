"""The rules of GPU kernels: each planted fault has its complaint."""

import pytest

from intarsia.ir import structural_equal
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.ir.verify import verify
from intarsia.support.errors import ProgramTextError, VerifyError

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
COPIED_ROWS = f"""{HEAD}
  for block b in 4 {{
    alloc row: Buffer[(8,), float32, shared] {{
      for thread t in 2 {{
        async copy row[t * 4] = x[b, t * 4] width 4;
        async commit;
        async wait 0;
        barrier;
        for i in 4 {{
          y[b, t * 4 + i] = row[7 - t * 4 - i];
        }}
      }}
    }}
  }}
}}
"""


def test_asynchronous_copies_print_and_read_back() -> None:
    ragged = COPIED_ROWS.replace("width 4;", "width 4 valid 3 - t;")
    for text in (COPIED_ROWS, ragged):
        mod = parse_module(text)
        verify(mod)
        assert print_module(mod).text.strip().endswith(text.strip())
        assert structural_equal(parse_module(print_module(mod).text), mod)
    assert not structural_equal(parse_module(ragged), parse_module(COPIED_ROWS))


@pytest.mark.parametrize(
    ("before", "after"),
    [("width 4", "width 2"), ("wait 0", "wait 1"), ("async commit;", ""), ("x[b, t * 4]", "x[b, 0]")],
)
def test_each_part_of_a_copy_counts_in_structural_equality(before: str, after: str) -> None:
    changed = parse_module(COPIED_ROWS.replace(before, after))
    assert not structural_equal(changed, parse_module(COPIED_ROWS))


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
SHARED = "alloc s: Buffer[(8,), float32, shared] { "
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
    "an asynchronous copy stands outside": "async copy y[0, 0] = x[0, 0] width 1;",
    "the end of a group of copies stands outside": "async commit;",
    "a wait stands outside": "async wait 0;",
    "a wait stands in a guard": f"for block b in 4 {{ {THREADS}if t < 3 {{ async wait 0; }} {STORE} }} }}",
    "writes y, which is not shared": (
        f"for block b in 4 {{ {THREADS}async copy y[b, t] = x[b, t] width 1; }} }}"
    ),
    "reads s, which is shared; expected global": (
        f"for block b in 4 {{ {SHARED}{THREADS}async copy s[t] = s[t] width 1; {STORE} }} }} }}"
    ),
    "a kernel writes y, which it copies": (
        f"for block b in 4 {{ {SHARED}{THREADS}async copy s[t] = y[b, t] width 1; {STORE} }} }} }}"
    ),
    "copy stands in a vectorized loop": (
        f"for block b in 4 {{ {SHARED}{THREADS}for vectorized i in 2 "
        f"{{ async copy s[t] = x[b, t] width 1; }} {STORE} }} }} }}"
    ),
    "has 12 bytes; expected 4, 8 or 16": (
        f"for block b in 4 {{ {SHARED}{THREADS}async copy s[0] = x[b, t] width 3; {STORE} }} }} }}"
    ),
    "the number of valid elements is float32; expected int64": (
        f"for block b in 4 {{ {SHARED}{THREADS}async copy s[0] = x[b, t] width 4 valid 2f32; {STORE} }} }} }}"
    ),
    "found 1 as the number of indices of x; expected 2": (
        f"for block b in 4 {{ {SHARED}{THREADS}async copy s[t] = x[t] width 1; {STORE} }} }} }}"
    ),
    "a parallel loop stands inside a loop over threads": (
        f"for block b in 4 {{ for thread t in 8 {{ for parallel i in 2 {{ {STORE} }} }} }}"
    ),
}


@pytest.mark.parametrize("complaint", FAULTS)
def test_a_fault_has_its_complaint(complaint: str) -> None:
    with pytest.raises(VerifyError, match=complaint):
        verify(parse_module(f"{HEAD}\n{FAULTS[complaint]}\n}}"))


UNREADABLE = {
    "async x;": "found x; expected commit, copy or wait",
    "async copy x[0, 0] = y[0, 0];": "found ;; expected width",
    "async copy x[0, 0] = y[0, 0] width 1 x;": "found x; expected ';' or valid",
    "async wait;": "found ;; expected a whole number",
    "mma x[0, 0] = y[0, 0];": r"found =; expected '\+='",
    "mma x[0, 0] += y[0, 0];": r"found ;; expected '\*'",
    "mma x[0, 0] += signed;": "found ;; expected a name",
    "mma x[0, 0] += y[0, 0] * x[0, 0] x;": "found x; expected ';' or transposed",
}


@pytest.mark.parametrize("statement", UNREADABLE)
def test_a_statement_that_does_not_parse_says_what_is_missing(statement: str) -> None:
    with pytest.raises(ProgramTextError, match=UNREADABLE[statement]):
        parse_module(f"{HEAD} {statement} }}")


def test_a_guard_that_all_threads_decide_alike_may_hold_a_barrier() -> None:
    verify(parse_module(f"{HEAD} for block b in 4 {{ {THREADS}if b < 3 {{ barrier; }} {STORE} }} }} }}"))
