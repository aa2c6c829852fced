"""NVIDIA GPUs through their driver alone: `libcuda`, by ctypes (docs/gpu.md).

driver           functions of the driver, and its errors
cuda_context     memory, modules and launches on one GPU, in one stream
memory_pool      blocks of memory that are used again
staging          copies from and to the host through pinned memory
cuda_buffer      a value in the memory of a GPU
cuda_graph       work that is recorded once, and started by a single call
cuda_clock       time by events of the GPU
cuda_kernel      what a kernel for GPUs is, and its calls on arrays of the host
resident_program a program whose values stay on the GPU, to be timed there
cuda_device      the device kind `cuda` of programs on several devices
gpu_facts        the GPUs of this machine, read in another process
"""
