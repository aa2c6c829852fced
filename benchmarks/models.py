"""Every model of the zoo, tuned: which toolchain wins, by how much, and how right each one is.

Usage: python benchmarks/models.py [NAME ...] [--budget 10s] [--json] [--markdown]
"""

from __future__ import annotations

import argparse
import json

import intarsia as ia
from intarsia.driver.records import CandidateRecord
from intarsia.frontend.zoo import build_model, zoo
from intarsia.support.errors import IntarsiaError

HEADER = ("model", "toolchain", "median, ms", "ratio to best (95 %)", "max error", "verdict")


def verdict(record: CandidateRecord) -> str:
    if record.chosen:
        return "chosen"
    return f"{record.status.value}: {record.reason}" if record.reason else record.status.value


def row(model: str, record: CandidateRecord) -> tuple[str, ...]:
    ratio = record.ratio
    return (
        model,
        record.name,
        f"{record.timing.median * 1e3:.3f}" if record.timing else "-",
        f"{ratio.ratio:.3f} ({ratio.low:.3f} to {ratio.high:.3f})" if ratio else "-",
        f"{record.max_error:.1e}" if record.max_error is not None else "-",
        verdict(record),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[model.name for model in zoo()])
    parser.add_argument("--budget", default="10s")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    results = []
    separator = " | " if options.markdown else "  "
    if not options.json:
        print(separator.join(HEADER), flush=True)
        if options.markdown:
            print("|".join("---" for _ in HEADER))
    for name in options.names:
        try:
            result = ia.tune(build_model(name), budget=options.budget)
        except IntarsiaError as error:
            results.append({"model": name, "error": str(error)})
            continue
        results.append({**result.to_json(), "model": name})
        if not options.json:
            for record in result.candidates:
                print(separator.join(row(name, record)), flush=True)
    if options.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
