"""Kernels for batches of any size: their code reads it, or they are run as several of a few sizes.

batch_source    which dimension of a source is the batch, and the source for one size
equal_batches   first axes of parameters that have to be equal
batched_kernel  a kernel for each size, and which of them run
batched_blob    its bytes in artifacts; batched_profiler: the times of its parts
"""
