"""Random kernels of threads that exchange elements of shared memory, with a barrier behind each statement."""

from hypothesis import strategies as st

SIZE = 16
"""Number of elements of each buffer; threads have as many, or fewer."""


@st.composite
def barrier_kernels(draw: st.DrawFn) -> str:
    """The text of a kernel, which has no race."""
    threads = draw(st.sampled_from([3, 8, 16]))
    body = _statements(draw, [], depth=0)
    return f"""
def prim @f(x: Buffer[(16,), float32], y: Buffer[(2, 16), float32], z: Buffer[(2, 16), float32]) {{
  for block b in 2 {{
    alloc s: Buffer[(16,), float32, shared] {{
      alloc u: Buffer[(16,), float32, shared] {{
        for thread t in {threads} {{
          alloc r: Buffer[(1,), float32, register] {{
            for i in {-(-SIZE // threads)} {{
              if i * {threads} + t < 16 {{
                s[i * {threads} + t] = x[i * {threads} + t];
                u[i * {threads} + t] = x[15 - (i * {threads} + t)];
                z[b, i * {threads} + t] = 0.5f32;
              }}
            }}
            barrier;
            {body}
            for i in {-(-SIZE // threads)} {{
              if i * {threads} + t < 16 {{
                y[b, i * {threads} + t] = s[i * {threads} + t] + u[15 - (i * {threads} + t)];
              }}
            }}
          }}
        }}
      }}
    }}
  }}
}}
"""


def _statements(draw: st.DrawFn, counters: list[str], depth: int) -> str:
    return "\n".join(_statement(draw, counters, depth) for _ in range(draw(st.integers(1, 3))))


def _statement(draw: st.DrawFn, counters: list[str], depth: int) -> str:
    kinds = ["store", "store", "store", "memory", "row"]
    kind = draw(st.sampled_from(kinds + (["loop", "guard"] if depth < 2 else [])))
    if kind == "loop":
        counter = f"k{len(counters)}"
        body = _statements(draw, [*counters, counter], depth + 1)
        return f"for {counter} in {draw(st.integers(1, 3))} {{ {body} }}"
    if kind == "guard":  # all threads decide alike
        second = f" else {{ {_statements(draw, counters, depth + 1)} }}" if draw(st.booleans()) else ""
        return f"if b < 1 {{ {_statements(draw, counters, depth + 1)} }}{second}"
    first, second = draw(st.permutations(["s", "u"]))
    if kind == "memory":
        return f"z[b, t] = z[b, t] + {first}[{_element(draw, counters)}]; barrier;"
    if kind == "row":  # each thread has two elements
        write = f"{first}[(t * 2 + j) mod 16] = {second}[{_element(draw, counters)}] + 1.0f32;"
        return f"if t < 8 {{ for j in 2 {{ {write} }} }} barrier;"
    guard = draw(st.sampled_from(["t < 16", "t < 2", "t mod 2 < 1", "2 < t"]))
    write = (
        f"r[0] = {second}[{_element(draw, counters)}]; {first}[{_element(draw, counters)}] = r[0] * 0.5f32;"
    )
    return f"if {guard} {{ {write} }} barrier;"


def _element(draw: st.DrawFn, counters: list[str]) -> str:
    """The index of an element; no two threads have the same one."""
    factor = draw(st.sampled_from([1, 1, 1, 3, 5]))
    terms = [f"t * {factor}", str(draw(st.sampled_from([0, 0, 0, 1, 8])))]
    terms += [f"{counter} * {draw(st.sampled_from([0, 1, 8]))}" for counter in counters]
    return f"({' + '.join(terms)}) mod 16"
