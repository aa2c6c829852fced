"""Sizes of symbolic dimensions for which a program is measured and checked.

dim_sizes       what the user says of a dimension: a range, or how often each size comes
size_sample     one size for each dimension, with a weight
choose_samples  few samples that cover the dimensions: some are timed, more are checked
default_sizes   what is assumed of a dimension of which nothing is said
tried_ranges    a hint with the sizes of a program that fails at all of them
summed_dims     dimensions whose names say that they are sums of others
"""

from intarsia.measure.sizes.choose_samples import choose_samples
from intarsia.measure.sizes.default_sizes import default_sizes
from intarsia.measure.sizes.dim_sizes import DimSizes
from intarsia.measure.sizes.size_sample import SizeSample

__all__ = ["DimSizes", "SizeSample", "choose_samples", "default_sizes"]
