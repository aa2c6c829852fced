"""The commands, and the flags that they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from intarsia.cli.commands import (
    bench,
    bisect,
    compare,
    db,
    devices,
    doctor,
    explain,
    opt,
    passes,
    profile,
    report,
    run,
    sign,
    tune,
    verify,
    zoo,
)

HELP = "Find the fastest inference engine, or mix of engines, for an ONNX model; verify it, and save it."


_MODELS = frozenset({"model", "models"})
"""Names of the parameters of commands that take models."""


def build_command() -> Callable[..., Any]:
    """Build the whole command line as a typer command."""
    app = typer.Typer(name="intarsia", help=HELP, rich_markup_mode=None)
    app.callback()(_program)
    for function in _commands():
        app.command(function.__name__)(function)
    shelf = typer.Typer(help="Built-in models, without download.", rich_markup_mode=None)
    shelf.command("list")(zoo.list_models)
    shelf.command("export")(zoo.export_model)
    app.add_typer(shelf, name="zoo")
    records = typer.Typer(help="Show, exchange and prune stored measurements.", rich_markup_mode=None)
    records.command("list")(db.list_workloads)
    records.command("show")(db.show_workload)
    records.command("top")(db.top_candidates)
    records.command("export")(db.export_lines)
    records.command("import")(db.import_lines)
    records.command("merge")(db.merge_database)
    records.command("gc")(db.collect_garbage)
    app.add_typer(records, name="db")
    group = typer.main.get_command(app)
    _share_flags(group)
    return group


def _commands() -> tuple[Callable[..., Any], ...]:
    return (
        doctor.doctor,
        devices.devices,
        tune.tune,
        run.run,
        bench.bench,
        profile.profile,
        compare.compare,
        verify.verify,
        explain.explain,
        report.report,
        opt.opt,
        bisect.bisect,
        passes.passes,
        sign.keygen,
        sign.sign,
    )


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from intarsia.support.version import VERSION

        typer.echo(f"intarsia {VERSION}")
        raise typer.Exit


def _program(
    version: Annotated[  # noqa: ARG001 - its callback handles it
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    return


def _share_flags(group: Any) -> None:
    """Add the flags that `Flags` has removed from the command line to the help of every command."""
    for command in group.commands.values():
        if hasattr(command, "commands"):
            _share_flags(command)
        else:
            if any(param.name in _MODELS for param in command.params):
                command.params.extend(_hidden_params(_limits))
            command.params.extend(_hidden_params(_flags))


def _flags(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document only.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Hide progress and notes.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Declares the shared flags, which `Flags` has taken off the command line; never called."""


def _limit(context: typer.Context, max_elements: int | None) -> None:
    """Set the import limit of a command."""
    if max_elements is not None:
        from intarsia.frontend.onnx import ImportLimits, default_limits

        context.with_resource(default_limits(ImportLimits(max_elements)))


def _limits(
    max_elements: Annotated[
        int | None,
        typer.Option(
            "--max-elements",
            metavar="N",
            min=1,
            help="Reject models with an intermediate tensor of more elements. [default: 2147483648]",
            callback=_limit,
        ),
    ] = None,
) -> None:
    """Declares the option of all commands that import a model; never called."""


def _hidden_params(declaration: Callable[..., None]) -> list[Any]:
    """Return the parameters of a function for help and completion; commands are not called with them."""
    app = typer.Typer(add_completion=False)
    app.command()(declaration)
    params: list[Any] = typer.main.get_command(app).params
    for param in params:
        param.expose_value = False
    return params
