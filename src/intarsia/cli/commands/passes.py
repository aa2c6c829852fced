"""`intarsia passes`: list the passes and pipelines, or explain one."""

from __future__ import annotations

from difflib import get_close_matches
from inspect import getdoc
from typing import TYPE_CHECKING, Annotated

import typer

from intarsia.cli.arguments.completion import complete_pass_or_pipeline
from intarsia.cli.reports.report import Block, Report
from intarsia.cli.reports.table import Table
from intarsia.support.errors import UsageError

if TYPE_CHECKING:
    from intarsia.transform import Pass, PassContext, PassInfo
    from intarsia.transform.pass_config import ConfigOption

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]",
        help="Pass or option type to describe, or pipeline to show the passes of.",
        autocompletion=complete_pass_or_pipeline,
    ),
]


def passes(
    name: Name = None,
    *,
    opt_level: Annotated[int, typer.Option("--opt-level", metavar="N", help="Optimization level.")] = 2,
) -> Report:
    """List the passes and pipelines, or explain one of them.

    Passes are written as intarsia tune, opt and bisect read them: NAME, or NAME{option=value, ...}. A value
    is a number, True, False, None, a text, a pass, an option type such as Beam{width=2}, or a list:
    "TunePlacement{eval_passes=[TuneLayout{layouts=[NHWC]}, TuneSchedule]}".
    """
    from intarsia.transform import PassContext, pass_names, pipeline_names
    from intarsia.transform.option_type import OPTION_TYPES
    from intarsia.transform.pass_packages import load_pass_packages

    if name is None:
        return _list_all()
    if name in pipeline_names():
        return _explain_pipeline(name, PassContext(opt_level=opt_level))
    if name in pass_names():
        return _describe_pass(name)
    if name in OPTION_TYPES:
        return _describe_option_type(name)
    error = UsageError(f"no pass or pipeline is named {name!r}", help=_candidates(name))
    for reason in load_pass_packages():
        error.add_note(f"could not be loaded: {reason}")
    raise error


def _candidates(name: str) -> str:
    from intarsia.transform import pass_names, pipeline_names
    from intarsia.transform.option_type import OPTION_TYPES

    close = get_close_matches(name, (*pass_names(), *pipeline_names(), *OPTION_TYPES), n=3)
    return f"did you mean {' or '.join(close)}?" if close else "`intarsia passes` lists them"


def _describe_pass(name: str) -> Report:
    """Describe a pass: its text, options and ordering constraints."""
    from intarsia.transform import Sequential
    from intarsia.transform.pass_registry import registered_pass

    described = registered_pass(name)
    text = str(described) if isinstance(described, Sequential) else getdoc(described) or ""
    constraints = _constraints(described.info)
    document = {
        "pass": name,
        "opt_level": described.info.opt_level,
        "constraints": constraints,
        "options": _options(described),
        "text": text,
    }
    constraint_lines = [f"{key}: {', '.join(names)}" for key, names in constraints.items()]
    head = [f"{name}, level {described.info.opt_level}", *constraint_lines, *_option_lines(described)]
    return Report(document, ("\n".join(head), "", text))


def _describe_option_type(name: str) -> Report:
    """Describe a class of objects that are options of passes, such as a search strategy."""
    from intarsia.transform.option_type import OPTION_TYPES

    described = OPTION_TYPES[name]
    text = getdoc(described) or ""
    document = {"option_type": name, "options": _options(described), "text": text}
    return Report(
        document, ("\n".join([f"{name}, an option of passes", *_option_lines(described)]), "", text)
    )


def _option_lines(described: object) -> list[str]:
    """Return a line for each option, and one for each type of which several classes are."""
    from intarsia.transform.pass_syntax.option_hint import option_hints, option_type_names, type_text

    hints = option_hints(described)
    types = {type_text(hint.hint): names for hint in hints if (names := option_type_names(hint.hint))}
    return [
        *(f"option {hint}{', needed' if hint.is_needed else ''}" for hint in hints),
        *(f"each {kind} is: {', '.join(names)}" for kind, names in types.items() if len(names) > 1),
    ]


def _constraints(info: PassInfo) -> dict[str, list[str]]:
    """Return the constraints that a pass declares, by their names in the class statement."""
    given = {
        "required": info.required,
        "after": info.after,
        "directly_after": (info.directly_after,) if info.directly_after else (),
        "directly_before": (info.directly_before,) if info.directly_before else (),
        "conflicts": info.conflicts,
    }
    stated = {key: list(names) for key, names in given.items() if names}
    return stated if info.handles is None else {**stated, "handles": sorted(info.handles)}


def _options(described: object) -> list[dict[str, str | None]]:
    """Return name, type and default of each option as text; needed options have no default."""
    from intarsia.transform.pass_syntax.option_hint import option_hints, type_text
    from intarsia.transform.pass_text import option_text

    return [
        {
            "name": item.name,
            "type": type_text(item.hint),
            "default": None if item.is_needed else option_text(item.default),
        }
        for item in option_hints(described)
    ]


def _explain_pipeline(name: str, ctx: PassContext) -> Report:
    from intarsia.transform import load_pass_sequence

    explained = load_pass_sequence(name).explain(ctx)
    rows = tuple(
        ("runs" if item.runs else "skipped", "  " * item.depth + item.name, item.reason)
        for item in explained.passes
    )
    document = {
        "pipeline": name,
        "opt_level": ctx.opt_level,
        "passes": [
            {"name": item.name, "runs": item.runs, "reason": item.reason, "depth": item.depth}
            for item in explained.passes
        ],
    }
    return Report(document, (Table(("", "pass", "reason"), rows),))


def _list_all() -> Report:
    from intarsia.transform import PassContext, pass_names
    from intarsia.transform.pass_packages import load_pass_packages
    from intarsia.transform.pass_registry import registered_pass

    items = [registered_pass(name) for name in pass_names()]
    rows = tuple((item.info.name, str(item.info.opt_level), _summary(item)) for item in items)
    pipelines, broken = _pipelines()
    keys = PassContext.list_configs()
    document = {
        "passes": [
            {
                "name": item.info.name,
                "opt_level": item.info.opt_level,
                "required": list(item.info.required),
                "summary": _summary(item),
            }
            for item in items
        ],
        "pipelines": pipelines,
        "config": [dict(zip(("key", "type", "default", "doc"), _key_row(key), strict=True)) for key in keys],
        "broken_packages": list(load_pass_packages()),
        "broken_pipelines": broken,
    }
    blocks: tuple[Block, ...] = (
        Table(("pass", "level", "description"), rows, frozenset({1})),
        Table(("config key", "type", "default", "description"), tuple(map(_key_row, keys))),
        *(f"{name}: {', '.join(inner)}" for name, inner in pipelines.items()),
        *(f"cannot be made: {reason}" for reason in broken),
        *(f"could not be loaded: {reason}" for reason in load_pass_packages()),
    )
    return Report(document, blocks)


def _pipelines() -> tuple[dict[str, list[str]], list[str]]:
    """Return the passes of each pipeline, and the errors of those that cannot be created."""
    from intarsia.transform import load_pass_sequence, pipeline_names

    by_name, broken = {}, []
    for name in pipeline_names():
        try:
            by_name[name] = [item.info.name for item in load_pass_sequence(name).passes]
        except Exception as error:  # whatever a function of another package raises
            broken.append(f"{name}: {getattr(error, 'problem', error)}")
    return by_name, broken


def _key_row(key: ConfigOption[object]) -> tuple[str, str, str, str]:
    return (key.key, key.type.__name__, repr(key.default), key.doc)


def _summary(item: type[Pass] | Pass) -> str:
    """Return the first line of the docstring; of a sequence, its passes."""
    from intarsia.transform import Sequential

    if isinstance(item, Sequential):
        return ", then ".join(inner.info.name for inner in item.passes)
    lines = (item.__doc__ or "").strip().splitlines()
    return lines[0] if lines else ""
