"""Kernels for NVIDIA GPUs: loops over blocks and threads as PTX (DESIGN section 14).

schedule_stages      schedules of elementwise stages, reductions, and rows
product_schedule     schedules of matrix products and convolutions
default_gpu_state    the schedule of a DAG, and its kernels
kernel_list          the kernels of a loop function, in order, and the buffers between them
kernel_statements    statements of one thread as LLVM instructions
emit_kernels         all kernels of a loop function as one LLVM module
generate_ptx         LLVM IR to PTX, in a child process
ptxas                checks PTX, and counts registers and spills
cpu_form             the very same LLVM IR for a CPU, where it can be tested
"""
