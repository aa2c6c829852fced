"""Run in a process of its own: print the digests of programs in a folder, as JSON."""

import json
import sys
from pathlib import Path

import numpy as np

from intarsia.ir import structural_digest
from intarsia.ir.parser import parse_module


def digest(folder: Path, number: int) -> str:
    constants = np.load(folder / f"{number}.npz")
    text = (folder / f"{number}.txt").read_text(encoding="utf-8")
    return structural_digest(parse_module(text, [constants[name] for name in constants.files]))


if __name__ == "__main__":
    sys.stdout.write(json.dumps([digest(Path(sys.argv[1]), number) for number in range(int(sys.argv[2]))]))
