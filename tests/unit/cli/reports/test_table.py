import io

import pytest
from rich.console import Console

from intarsia.cli.reports.table import Table, plain_table, rich_table

TABLE = Table(
    headers=("model", "toolchain", "latency", "chosen"),
    rows=(
        ("squeezenet", "openvino threads=2", "5.12 ms", "yes"),
        ("squeezenet", "reference", "-", ""),
    ),
    numeric=frozenset({2}),
    chosen=0,
)


def test_plain() -> None:
    assert plain_table(TABLE) == (
        "model       toolchain           latency  chosen\n"
        "squeezenet  openvino threads=2  5.12 ms  yes\n"
        "squeezenet  reference                 -"
    )


def test_plain_text_is_never_cut_off() -> None:
    long = "x" * 500
    assert plain_table(Table(("a", "b"), ((long, "1"),))).splitlines()[1] == f"{long}  1"


def test_a_cell_of_several_lines_stays_in_its_row() -> None:
    assert plain_table(Table(("a", "b"), (("one\ntwo", "3"),))) == "a        b\none two  3"


def test_without_rows() -> None:
    assert plain_table(Table(("a", "bc"), ())) == "a  bc"


def drawn(table: Table, width: int, colours: bool = False) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        force_terminal=colours,
        color_system="standard" if colours else None,
        no_color=not colours,
    )
    console.print(rich_table(table))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def test_on_a_terminal() -> None:
    assert drawn(TABLE, 80) == (
        "model        toolchain            latency   chosen\n"
        "─────────────────────────────────────────────────────\n"
        "squeezenet   openvino threads=2   5.12 ms   yes\n"
        "squeezenet   reference                  -"
    ).replace("─" * 53, "─" * len(drawn(TABLE, 80).splitlines()[1]))


def test_a_narrow_terminal_folds_and_loses_nothing() -> None:
    shown = drawn(Table(("a",), (("x" * 50,),)), 20)
    assert shown.count("x") == 50


def test_the_chosen_row_stands_out() -> None:
    lines = drawn(TABLE, 80, colours=True).splitlines()
    assert "\x1b[1;32m" in lines[2]
    assert "\x1b[1;32m" not in lines[3]


def test_markup_in_cells_is_text() -> None:
    assert "[red]x[/red]" in drawn(Table(("a",), (("[red]x[/red]",),)), 40)


def test_rows_must_fit_the_headers() -> None:
    with pytest.raises(ValueError, match=r"^a row has 1 cells under 2 headers: \('1',\)$"):
        Table(("a", "b"), (("1",),))
