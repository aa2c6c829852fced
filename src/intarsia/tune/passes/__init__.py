"""The tuning passes, one per file; importing this package registers them.

tune_channel_blocks     how many channels native keeps together for a convolution
tune_combine_parallel   whether parallel convolutions and matrix products are combined
tune_convolutions       by which algorithm native computes convolutions
tune_flags              options of toolchains that keep results: threads, sessions, LLVM
tune_fusion_borders     where native's kernels end
tune_kernel_threads     which of native's kernels run on one thread
tune_kernels_jointly    all decisions on native's kernels, timed together
tune_layout             which layout images are in
tune_libraries          which matrix products of native a library computes
tune_packing            how native reads the right matrices of products
tune_pipeline           which named sequence of heuristic passes runs
tune_precision          narrower types, within a bound on the error
tune_quantization       which layers are computed in 8-bit integers, within a bound on the error
tune_subgraphs          passes that tune one of several equal parts, for all of them
tune_weights            in how many bytes native stores weights, within a bound on the error
tune_rewrite            graph substitution by best-first search (rewrite_frontier, rewrite_estimate)

CalibrateQuantization and SmoothActivations, of tune/quantise, run programs as well.
"""

from intarsia.tune.passes.tune_channel_blocks import TuneChannelBlocks
from intarsia.tune.passes.tune_combine_parallel import TuneCombineParallel
from intarsia.tune.passes.tune_convolution_forms import TuneConvolutionForms
from intarsia.tune.passes.tune_convolutions import TuneConvolutions
from intarsia.tune.passes.tune_flags import TuneFlags
from intarsia.tune.passes.tune_fusion_borders import TuneFusionBorders
from intarsia.tune.passes.tune_fusion_merges import TuneFusionMerges
from intarsia.tune.passes.tune_kernel_threads import TuneKernelThreads
from intarsia.tune.passes.tune_kernels_jointly import TuneKernelsJointly
from intarsia.tune.passes.tune_layout import TuneLayout
from intarsia.tune.passes.tune_libraries import TuneLibraries
from intarsia.tune.passes.tune_packing import TunePacking
from intarsia.tune.passes.tune_pipeline import TunePipeline
from intarsia.tune.passes.tune_precision import TunePrecision
from intarsia.tune.passes.tune_quantization import TuneQuantization
from intarsia.tune.passes.tune_rewrite import TuneRewrite
from intarsia.tune.passes.tune_subgraphs import TuneSubgraphs
from intarsia.tune.passes.tune_weights import TuneWeights
from intarsia.tune.quantise.calibrate_quantization import CalibrateQuantization
from intarsia.tune.quantise.smooth_activations import SmoothActivations

__all__ = [
    "CalibrateQuantization",
    "SmoothActivations",
    "TuneChannelBlocks",
    "TuneCombineParallel",
    "TuneConvolutionForms",
    "TuneConvolutions",
    "TuneFlags",
    "TuneFusionBorders",
    "TuneFusionMerges",
    "TuneKernelThreads",
    "TuneKernelsJointly",
    "TuneLayout",
    "TuneLibraries",
    "TunePacking",
    "TunePipeline",
    "TunePrecision",
    "TuneQuantization",
    "TuneRewrite",
    "TuneSubgraphs",
    "TuneWeights",
]
