"""Kernels for NVIDIA GPUs: loops over blocks and threads as PTX (DESIGN section 14).

schedule_stages      schedules of elementwise stages, reductions, and rows
product_schedule     schedules of matrix products and convolutions
attention            attention of a DAG as one kernel
attention_kernel     that kernel
attention_layout     what rows, keys and columns a thread has
attention_layouts    layouts with and without tensor cores
elementwise_chain    what follows an operation element by element
index_scalars        indices and loops of kernels without a schedule
tensor_cores         products of a DAG that tensor cores compute
tensor_core_product  their kernels
tensor_core_convolution  convolutions as such products
tensorised           states whose loops are such a product
estimated_registers  what a thread keeps in registers, before there is machine code
copies_ahead         shared tiles in turn, filled by asynchronous copies
default_gpu_state    the schedule of a DAG, and its kernels
kernels_of_items     kernels for any number of items, whose grid is computed when they are launched
text_kernels         kernels between texts of any length and their tokens
token_attention_kernel   attention among these
token_filter_kernel  weighted sums of the neighbours of each token
virtual_threads      virtual threads of a thread, written out
needless_barriers    kernels without barriers that order nothing
thread_touches       whether two threads may touch one element
padded_tiles         padding of shared tiles against conflicts of banks
index_values         the values of indices for all threads
memory_accesses      what accesses cost global and shared memory
static_cost          a cost that orders candidates, and is no time
kernel_list          the kernels of a loop function, in order, and the buffers between them
kernel_statements    statements of one thread as LLVM instructions
warp_products        products of a warp as LLVM instructions
emit_kernels         all kernels of a loop function as one LLVM module
generate_ptx         LLVM IR to PTX, in a child process
ptxas                checks PTX, and counts registers and spills
amdgpu_form          the same LLVM IR for GPUs of AMD
plain_dots           sums of products of bytes without NVIDIA's instruction
cpu_form             the very same LLVM IR for a CPU, where it can be tested
"""
