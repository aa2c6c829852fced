/* Runs GPU kernels that were compiled for a CPU: blocks in turn, one coroutine for each thread of a block.

   A thread runs until its next barrier, then the next thread does, in ascending or descending order. So what a
   missing barrier breaks is broken in one of both orders, every time. Shared memory is filled with NaN first.

   An asynchronous copy is done when its thread waits for its group, and not before: what a missing wait breaks
   is broken.

   What a warp does together, loads of matrices and products, is done when all its threads have called it. A warp
   goes as far as its next barrier before the next warp runs. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { STACK_BYTES = 128 * 1024, MOST_THREADS = 1024, WARP = 32 };
enum { BARRIER_NOT_REACHED = 1, TOO_MANY_THREADS, COPIES_LEFT, MISALIGNED_ADDRESS };
enum { READY, AT_BARRIER, IN_WARP, DONE };
enum { MATRICES, PRODUCT };
enum { BFLOAT16, FLOAT16, TF32, BYTES, SIGNED_BYTES };

typedef void (*kernel_entry)(void **);

/* A copy that is under way; `group` counts those of its thread. */
struct copy { char *to; const char *from; int bytes, read, group; };
/* What a thread wants its warp to do. `row` is that of a matrix; words are a thread's part of matrices. */
struct request { int what, count, kind; uint32_t *words; const char *row; float *sums; };
struct copies { struct copy *items; int first, end, capacity, group; };

static ucontext_t scheduler, contexts[MOST_THREADS];
static char *stacks, states[MOST_THREADS];
static struct copies copies[MOST_THREADS];
static struct request requests[MOST_THREADS];
static int current_thread, current_block, fault;
static kernel_entry current_kernel;
static void **current_arguments;

int32_t intarsia_thread_index(void) { return current_thread; }
int32_t intarsia_block_index(void) { return current_block; }

static void leave(int state) {
  states[current_thread] = (char)state;
  swapcontext(&contexts[current_thread], &scheduler);
}

void intarsia_barrier(int32_t number) {
  (void)number;
  leave(AT_BARRIER);
}

void intarsia_matrices(int32_t *words, void *row, int32_t count, int32_t is_transposed) {
  if ((uintptr_t)row % 16) fault = MISALIGNED_ADDRESS;
  requests[current_thread] = (struct request){MATRICES, count, is_transposed, (uint32_t *)words, row, 0};
  leave(IN_WARP);
}

void intarsia_product(float *sums, int32_t *words, int32_t kind) {
  requests[current_thread] = (struct request){PRODUCT, 0, kind, (uint32_t *)words, 0, sums};
  leave(IN_WARP);
}

/* Rounds to 11 significant bits, halves away from zero. */
int32_t intarsia_as_tf32(float number) {
  uint32_t bits;
  memcpy(&bits, &number, 4);
  if ((bits & 0x7F800000) != 0x7F800000) bits = (bits + 0x1000) & ~0x1FFFu;
  return (int32_t)bits;
}

/* Matrix m has its rows at the addresses of threads 8 m to 8 m + 7. A thread gets two elements of each. */
static void load_matrices(const struct request *of) {
  for (int lane = 0; lane < WARP; lane++)
    for (int matrix = 0; matrix < of->count; matrix++) {
      uint16_t pair[2];
      for (int n = 0; n < 2; n++) {
        int first = lane / 4, second = lane % 4 * 2 + n;
        int row = of->kind ? second : first, column = of->kind ? first : second;
        memcpy(&pair[n], of[8 * matrix + row].row + 2 * column, 2);
      }
      memcpy(&of[lane].words[matrix], pair, 4);
    }
}

static double value_of_half(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double size = exponent == 31 ? (fraction ? __builtin_nan("") : __builtin_inf())
              : exponent ? __builtin_ldexp(1024 + fraction, exponent - 25) : __builtin_ldexp(fraction, -24);
  return bits >> 15 ? -size : size;
}

/* Element `k` of a fragment's row: words of a thread hold columns of 4 threads, 8 bytes or so apart. */
static double element(const struct request *of, int group, int upper, int k, int is_left) {
  int per_word = of->kind == TF32 ? 1 : 2, half = 4 * per_word;
  int lane = group * 4 + k % half / per_word, word = k / half * (is_left ? 2 : 1) + upper;
  uint32_t bits = of[lane].words[(is_left ? 0 : 4) + word];
  float single;
  if (of->kind == FLOAT16) return value_of_half((uint16_t)(bits >> 16 * (k % 2)));
  if (of->kind == BFLOAT16) bits = k % 2 ? bits & 0xFFFF0000 : bits << 16;
  if (of->kind == TF32) bits &= ~0x1FFFu;
  memcpy(&single, &bits, 4);
  return single;
}

/* Products of four unsigned bytes of a factor by signed ones of the other one; sums wrap around. */
static void multiply_bytes(const struct request *of) {
  for (int lane = 0; lane < WARP; lane++)
    for (int sum = 0; sum < 4; sum++) {
      int32_t total;
      memcpy(&total, &of[lane].sums[sum], 4);
      for (int k = 0; k < 8; k++) {
        uint32_t left = of[lane / 4 * 4 + k % 4].words[k / 4 * 2 + sum / 2];
        uint32_t right = of[(lane % 4 * 2 + sum % 2) * 4 + k % 4].words[4 + k / 4];
        uint32_t from = of->kind == SIGNED_BYTES ? right : left, by = of->kind == SIGNED_BYTES ? left : right;
        for (int n = 0; n < 32; n += 8) total += (int32_t)(from >> n & 255) * (int8_t)(by >> n & 255);
      }
      memcpy(&of[lane].sums[sum], &total, 4);
    }
}

static void multiply(const struct request *of) {
  if (of->kind == BYTES || of->kind == SIGNED_BYTES) {
    multiply_bytes(of);
    return;
  }
  for (int lane = 0; lane < WARP; lane++)
    for (int sum = 0; sum < 4; sum++) {
      double total = of[lane].sums[sum];
      for (int k = 0; k < (of->kind == TF32 ? 8 : 16); k++)
        total += element(of, lane / 4, sum / 2, k, 1) * element(of, lane % 4 * 2 + sum % 2, 0, k, 0);
      of[lane].sums[sum] = (float)total;
    }
}

static void start_copy(void *to, void *from, int bytes, int read) {
  struct copies *own = &copies[current_thread];
  if ((uintptr_t)to % (unsigned)bytes || (uintptr_t)from % (unsigned)bytes) fault = MISALIGNED_ADDRESS;
  if (own->end == own->capacity) {
    own->capacity = own->capacity ? 2 * own->capacity : 64;
    own->items = realloc(own->items, (size_t)own->capacity * sizeof *own->items);
  }
  own->items[own->end++] = (struct copy){to, from, bytes, read, own->group};
}

void intarsia_copy_4(void *to, void *from) { start_copy(to, from, 4, 4); }
void intarsia_copy_8(void *to, void *from) { start_copy(to, from, 8, 8); }
void intarsia_copy_16(void *to, void *from) { start_copy(to, from, 16, 16); }
void intarsia_copy_4_ragged(void *to, void *from, int32_t read) { start_copy(to, from, 4, read); }
void intarsia_copy_8_ragged(void *to, void *from, int32_t read) { start_copy(to, from, 8, read); }
void intarsia_copy_16_ragged(void *to, void *from, int32_t read) { start_copy(to, from, 16, read); }
void intarsia_copy_commit(void) { copies[current_thread].group++; }

void intarsia_copy_wait(int32_t pending) {
  struct copies *own = &copies[current_thread];
  while (own->first < own->end && own->items[own->first].group < own->group - pending) {
    struct copy copy = own->items[own->first++];
    memcpy(copy.to, copy.from, (size_t)copy.read);
    memset(copy.to + copy.read, 0, (size_t)(copy.bytes - copy.read));
  }
  if (own->first == own->end) own->first = own->end = 0;
}

static void call_kernel(void) {
  struct copies *own = &copies[current_thread];
  own->first = own->end = own->group = 0;
  current_kernel(current_arguments);
  if (own->end) fault = COPIES_LEFT;
}

static void run_thread(void) {
  call_kernel();
  states[current_thread] = DONE;
}

static void start_thread(int thread) {
  getcontext(&contexts[thread]);
  contexts[thread].uc_stack.ss_sp = stacks + (size_t)thread * STACK_BYTES;
  contexts[thread].uc_stack.ss_size = STACK_BYTES;
  contexts[thread].uc_link = &scheduler;
  makecontext(&contexts[thread], run_thread, 0);
  states[thread] = READY;
}

/* Runs the threads of a warp to the next barrier, or to their end, or until some of them wait for others. */
static void run_warp(int first, int count, int is_descending) {
  for (int waiting = count; waiting == count;) {
    for (int turn = 0; turn < count; turn++) {
      current_thread = first + (is_descending ? count - 1 - turn : turn);
      if (states[current_thread] == READY) swapcontext(&scheduler, &contexts[current_thread]);
    }
    waiting = 0;
    for (int lane = 0; lane < count; lane++)
      waiting += states[first + lane] == IN_WARP && requests[first + lane].what == requests[first].what;
    if (waiting != count || count != WARP) return;
    (requests[first].what == PRODUCT ? multiply : load_matrices)(requests + first);
    memset(states + first, READY, WARP);
  }
}

/* Runs one block; returns a fault if some threads wait where others never arrive. */
static int run_block(int threads, int is_descending) {
  int warps = (threads + WARP - 1) / WARP;
  for (int thread = 0; thread < threads; thread++) start_thread(thread);
  for (int done = 0; done < threads;) {
    for (int turn = 0; turn < warps; turn++) {
      int first = WARP * (is_descending ? warps - 1 - turn : turn);
      run_warp(first, threads - first < WARP ? threads - first : WARP, is_descending);
    }
    done = 0;
    for (int thread = 0; thread < threads; thread++) {
      if (states[thread] == IN_WARP) return BARRIER_NOT_REACHED;
      done += states[thread] == DONE;
      if (states[thread] == AT_BARRIER) states[thread] = READY;
    }
    if (done && done < threads) return BARRIER_NOT_REACHED;
  }
  return 0;
}

/* Runs a grid; returns 0, or what is wrong with it. */
int run_grid(kernel_entry kernel, void **arguments, int blocks, int threads, void *shared, size_t shared_bytes,
             int has_barriers, int is_descending) {
  if (threads > MOST_THREADS) return TOO_MANY_THREADS;
  if (!stacks) stacks = malloc((size_t)MOST_THREADS * STACK_BYTES);
  current_kernel = kernel;
  current_arguments = arguments;
  fault = 0;
  for (int turn = 0; turn < blocks && !fault; turn++) {
    current_block = is_descending ? blocks - 1 - turn : turn;
    if (shared) memset(shared, 0xFF, shared_bytes);
    if (has_barriers) {
      int failed = run_block(threads, is_descending);
      if (failed) return failed;
      continue;
    }
    for (int thread = 0; thread < threads; thread++) {
      current_thread = is_descending ? threads - 1 - thread : thread;
      call_kernel();
    }
  }
  return fault;
}
