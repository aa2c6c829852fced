/* Runs GPU kernels that were compiled for a CPU: blocks in turn, one coroutine for each thread of a block.

   A thread runs until its next barrier, then the next thread does, in ascending or descending order. So what a
   missing barrier breaks is broken in one of both orders, every time. Shared memory is filled with NaN first. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { STACK_BYTES = 128 * 1024, MOST_THREADS = 1024 };

typedef void (*kernel_entry)(void **);

static ucontext_t scheduler, contexts[MOST_THREADS];
static char *stacks, is_done[MOST_THREADS];
static int current_thread, current_block;
static kernel_entry current_kernel;
static void **current_arguments;

int32_t intarsia_thread_index(void) { return current_thread; }
int32_t intarsia_block_index(void) { return current_block; }
void intarsia_barrier(int32_t number) {
  (void)number;
  swapcontext(&contexts[current_thread], &scheduler);
}

static void run_thread(void) {
  current_kernel(current_arguments);
  is_done[current_thread] = 1;
}

static void start_thread(int thread) {
  getcontext(&contexts[thread]);
  contexts[thread].uc_stack.ss_sp = stacks + (size_t)thread * STACK_BYTES;
  contexts[thread].uc_stack.ss_size = STACK_BYTES;
  contexts[thread].uc_link = &scheduler;
  makecontext(&contexts[thread], run_thread, 0);
  is_done[thread] = 0;
}

/* Runs one block; returns 1 if some threads wait at a barrier that others never reach. */
static int run_block(int threads, int is_descending) {
  for (int thread = 0; thread < threads; thread++) start_thread(thread);
  for (int done = 0; done < threads;) {
    done = 0;
    for (int turn = 0; turn < threads; turn++) {
      current_thread = is_descending ? threads - 1 - turn : turn;
      swapcontext(&scheduler, &contexts[current_thread]);
      done += is_done[current_thread];
    }
    if (done && done < threads) return 1;
  }
  return 0;
}

int run_grid(kernel_entry kernel, void **arguments, int blocks, int threads, void *shared, size_t shared_bytes,
             int has_barriers, int is_descending) {
  if (threads > MOST_THREADS) return 2;
  if (!stacks) stacks = malloc((size_t)MOST_THREADS * STACK_BYTES);
  current_kernel = kernel;
  current_arguments = arguments;
  for (int turn = 0; turn < blocks; turn++) {
    current_block = is_descending ? blocks - 1 - turn : turn;
    if (shared) memset(shared, 0xFF, shared_bytes);
    if (has_barriers) {
      if (run_block(threads, is_descending)) return 1;
      continue;
    }
    for (int thread = 0; thread < threads; thread++) {
      current_thread = is_descending ? threads - 1 - thread : thread;
      kernel(arguments);
    }
  }
  return 0;
}
