"""The tuning passes, one per file; importing this package registers them.

tune_combine_parallel   whether parallel convolutions and matrix products are combined
tune_layout             which layout images are in
tune_order              in which order heuristic passes run
tune_switches           which heuristic passes run at all
tune_rewrite            graph substitution by best-first search (rewrite_frontier, rewrite_estimate)
"""

from intarsia.tune.passes.tune_combine_parallel import TuneCombineParallel
from intarsia.tune.passes.tune_layout import TuneLayout
from intarsia.tune.passes.tune_order import TuneOrder
from intarsia.tune.passes.tune_rewrite import TuneRewrite
from intarsia.tune.passes.tune_switches import TuneSwitches

__all__ = ["TuneCombineParallel", "TuneLayout", "TuneOrder", "TuneRewrite", "TuneSwitches"]
