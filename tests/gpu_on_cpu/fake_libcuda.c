/* The functions of the CUDA driver that Intarsia calls, on the memory of the host. Kernels run as their CPU form:
   the image of a module is the path of a shared library (cpu_kernels.py).

   Streams are lazy: work is queued, and done when something waits for it. So a copy from pinned memory reads what is
   there when it is waited for, and a result is not there before: a missing wait gives a wrong result every time. With
   a seed, each call of the driver does some work of some streams before, which are drawn: what is late, what is in
   time, and which stream is ahead of which changes with the seed, and is the same each time for one thread.
   Work in pageable memory is done at once, as the driver does. To unload code or free pinned memory that queued work
   needs is an error, where the driver may or may not wait. A kernel that faults makes all later calls fail, until
   fake_reset. It counts allocations and copies, so that tests see what is uploaded again.

   FAKE_CUDA_BYTES limits its memory. FAKE_CUDA_FAULT_BLOCKS is a number of blocks: kernels that are launched with as
   many access an illegal address; those of FAKE_CUDA_HANG_BLOCKS blocks never end. FAKE_CUDA_GRID is the library that runs grids.
   FAKE_CUDA_SEED is the seed; without one, or 0, all work is as late as it can be. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, NOT_FOUND = 500,
  IN_USE = 402, NOT_READY = 600, ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719, CAPTURED = 900
};
enum { DEVICES = 2, MOST_ARGUMENTS = 256 };
enum work_kind { COPY, LAUNCH, RECORD };

typedef void (*kernel_entry)(void **);
typedef int (*grid_runner)(kernel_entry, void **, int, int, void *, size_t, int, int);

struct function { void *module; kernel_entry entry; int32_t *facts; void *shared; size_t shared_bytes; unsigned allowed_bytes; };
struct block { char *start; size_t size; int device, is_pinned; struct block *next; };
struct event { struct timespec time; struct stream *stream; int is_pending; };
struct work {
  enum work_kind kind;
  void *to, *from;
  size_t size;
  struct function *function;
  void *arguments[MOST_ARGUMENTS];
  int blocks, threads;
  struct event *event;
  struct work *next;
};
struct graph { struct work *first, **last; };
struct stream { int device; struct work *first, **last; struct graph *graph; struct stream *next; };

static struct block *blocks;
static struct stream *streams;
static size_t used_bytes;
static int contexts[DEVICES], sticky_error;
static _Thread_local int *current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static grid_runner run_grid;
size_t fake_uploaded_bytes, fake_modules, fake_pinned_bytes, fake_graphs, fake_graph_launches, fake_kernel_launches;
int fake_device_count = 1, fake_is_descending;
uint64_t fake_seed;

__attribute__((constructor)) static void load_grid(void) {
  const char *path = getenv("FAKE_CUDA_GRID"), *seed = getenv("FAKE_CUDA_SEED");
  fake_seed = seed ? strtoull(seed, 0, 10) : 0;
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : 0;
  run_grid = (grid_runner)dlsym(library ? library : RTLD_DEFAULT, "run_grid");
}

static struct block *block_of(const void *address, size_t size, int is_pinned) {
  for (struct block *b = blocks; b; b = b->next)
    if (b->is_pinned == is_pinned && (char *)address >= b->start && (char *)address + size <= b->start + b->size)
      return b;
  return 0;
}

static int launch(struct stream *s, struct work *w) {
  const char *fault = getenv("FAKE_CUDA_FAULT_BLOCKS");
  const char *hang = getenv("FAKE_CUDA_HANG_BLOCKS");
  if (fault && atoi(fault) == w->blocks) return ILLEGAL_ADDRESS;
  while (hang && atoi(hang) == w->blocks) pause();
  for (int n = 0; n < w->function->facts[0]; n++) {
    struct block *b = block_of(w->arguments[n], 1, 0);
    if (!b || b->device != s->device) return ILLEGAL_ADDRESS;
  }
  struct function *f = w->function;
  int failed = run_grid(f->entry, w->arguments, w->blocks, w->threads, f->shared, f->shared_bytes, f->facts[1],
                        fake_is_descending);
  return failed ? LAUNCH_FAILED : SUCCESS;
}

/* Does the first work of a stream. */
static void step(struct stream *s) {
  struct work *w = s->first;
  if (w->kind == COPY) memcpy(w->to, w->from, w->size);
  if (w->kind == LAUNCH) sticky_error = launch(s, w);
  if (w->kind == RECORD) {
    clock_gettime(CLOCK_MONOTONIC, &w->event->time);
    w->event->is_pending = 0;
  }
  if (!(s->first = w->next)) s->last = &s->first;
  free(w);
}
/* Does the work of a stream, up to the record of an event if one is given. */
static int finish(struct stream *s, struct event *until) {
  while (s->first && !sticky_error) {
    int is_last = s->first->kind == RECORD && s->first->event == until;
    step(s);
    if (is_last) break;
  }
  return sticky_error;
}
/* The next of the drawn numbers (xorshift64). */
static unsigned drawn(unsigned below) {
  fake_seed ^= fake_seed << 13;
  fake_seed ^= fake_seed >> 7;
  fake_seed ^= fake_seed << 17;
  return (unsigned)((fake_seed >> 33) % below);
}
/* Does a drawn part of the work of each stream. */
static void advance(void) {
  for (struct stream *s = streams; s && fake_seed; s = s->next)
    for (unsigned n = drawn(2) ? 0 : drawn(8); n && s->first && !sticky_error; n--) step(s);
}
static int is_needed(const struct block *pinned, const void *module) {
  for (struct stream *s = streams; s; s = s->next)
    for (struct work *w = s->first; w; w = w->next) {
      if (w->kind == LAUNCH && w->function->module == module) return 1;
      for (int n = 0; pinned && w->kind == COPY && n < 2; n++) {
        const char *at = n ? w->to : w->from;
        if (at >= pinned->start && at < pinned->start + pinned->size) return 1;
      }
    }
  return 0;
}
static int finish_all(void) {
  for (struct stream *s = streams; s; s = s->next) finish(s, 0);
  return sticky_error;
}
/* Adds work to a stream, or to the graph that it is captured into. */
static struct work *add(struct stream *s, enum work_kind kind) {
  struct work *w = calloc(1, sizeof *w), ***last = s->graph ? &s->graph->last : &s->last;
  w->kind = kind;
  **last = w;
  *last = &w->next;
  return w;
}
static int copy(struct stream *s, void *to, const void *from, size_t size, int is_at_once) {
  if (is_at_once && s->graph) return CAPTURED;
  struct work *w = add(s, COPY);
  w->to = to;
  w->from = (void *)from;
  w->size = size;
  return is_at_once ? finish(s, 0) : SUCCESS;
}

/* Each call of the driver: one at a time, none after a fault. */
static int enter(int needs_context) {
  pthread_mutex_lock(&lock);
  advance();
  return sticky_error ? sticky_error : needs_context && !current ? INVALID_CONTEXT : SUCCESS;
}
static int leave(int code) {
  pthread_mutex_unlock(&lock);
  return code;
}
#define BEGIN(needs_context)                     \
  do {                                           \
    int code = enter(needs_context);             \
    if (code) return leave(code);                \
  } while (0)

size_t fake_used_bytes(void) { return used_bytes; }
void fake_finish(void) {
  pthread_mutex_lock(&lock);
  finish_all();
  pthread_mutex_unlock(&lock);
}
void fake_reset(void) {
  sticky_error = 0;
  for (struct stream *s = streams; s; s = s->next) {
    while (s->first) {
      struct work *w = s->first;
      s->first = w->next;
      free(w);
    }
    s->last = &s->first;
  }
}

int cuInit(unsigned flags) { return (int)flags; }
int cuDriverGetVersion(int *version) { *version = 13000; return SUCCESS; }
int cuDeviceGetCount(int *count) { *count = fake_device_count; return SUCCESS; }
int cuDeviceGet(int *device, int number) { *device = number; return SUCCESS; }
int cuDeviceGetName(char *name, int size, int device) {
  snprintf(name, (size_t)size, "Fake GPU %d", device);
  return SUCCESS;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = (size_t)8 << 30; return SUCCESS; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device;
  *value = attribute == 75   ? 8       /* compute capability */
           : attribute == 76 ? 0
           : attribute == 13 ? 1500000 /* clock in kHz */
           : attribute == 36 ? 2000000 /* clock of the memory in kHz */
                             : 4;
  return SUCCESS;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &contexts[device]; return SUCCESS; }
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return SUCCESS; }
int cuCtxSetCurrent(void *context) {
  if ((int *)context < contexts || (int *)context >= contexts + DEVICES) return INVALID_VALUE;
  current = context;
  return sticky_error;
}

static int allocate(void **address, size_t size, int is_pinned) {
  const char *limit = getenv("FAKE_CUDA_BYTES");
  if (!size) return INVALID_VALUE;
  if (!is_pinned && limit && used_bytes + size > strtoull(limit, 0, 10)) return OUT_OF_MEMORY;
  struct block *b = calloc(1, sizeof *b);
  b->start = aligned_alloc(512, (size + 511) / 512 * 512);
  memset(b->start, 0xFF, size); /* NaN: new memory holds anything */
  b->size = size;
  b->device = (int)(current - contexts);
  b->is_pinned = is_pinned;
  b->next = blocks;
  blocks = b;
  *(is_pinned ? &fake_pinned_bytes : &used_bytes) += size;
  *address = b->start;
  return SUCCESS;
}
static int release(void *address, int is_pinned) {
  int code = is_pinned ? sticky_error : finish_all();
  for (struct block **b = &blocks; *b && !code; b = &(*b)->next)
    if ((*b)->start == address && (*b)->is_pinned == is_pinned) {
      if (is_pinned && is_needed(*b, 0)) return IN_USE;
      struct block *gone = *b;
      *b = gone->next;
      *(is_pinned ? &fake_pinned_bytes : &used_bytes) -= gone->size;
      free(gone->start);
      free(gone);
      return SUCCESS;
    }
  return code ? code : INVALID_VALUE;
}
int cuMemAlloc_v2(void **address, size_t size) {
  BEGIN(1);
  return leave(allocate(address, size, 0));
}
int cuMemFree_v2(void *address) {
  BEGIN(1);
  return leave(release(address, 0));
}
int cuMemHostAlloc(void **address, size_t size, unsigned flags) {
  BEGIN(1);
  return leave(flags ? INVALID_VALUE : allocate(address, size, 1));
}
int cuMemFreeHost(void *address) {
  BEGIN(1);
  return leave(release(address, 1));
}
int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t size, struct stream *s) {
  BEGIN(1);
  if (!block_of(to, size, 0)) return leave(INVALID_VALUE);
  fake_uploaded_bytes += size;
  return leave(copy(s, to, from, size, !block_of(from, size, 1)));
}
int cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t size, struct stream *s) {
  BEGIN(1);
  if (!block_of(from, size, 0)) return leave(INVALID_VALUE);
  return leave(copy(s, to, from, size, !block_of(to, size, 1)));
}
int cuMemcpyDtoDAsync_v2(void *to, const void *from, size_t size, struct stream *s) {
  BEGIN(1);
  if (!block_of(to, size, 0) || !block_of(from, size, 0)) return leave(INVALID_VALUE);
  return leave(copy(s, to, from, size, 0));
}
int cuMemcpyPeerAsync(void *to, int *to_context, const void *from, int *from_context, size_t size, struct stream *s) {
  BEGIN(1);
  struct block *target = block_of(to, size, 0), *origin = block_of(from, size, 0);
  if (!target || !origin || contexts + target->device != to_context || contexts + origin->device != from_context)
    return leave(INVALID_VALUE);
  return leave(copy(s, to, from, size, 0));
}

int cuModuleLoadDataEx(void **module, const char *image, unsigned count, int *options, void **values) {
  BEGIN(1);
  *module = dlopen(image, RTLD_NOW | RTLD_LOCAL);
  if (*module) {
    fake_modules++;
    return leave(SUCCESS);
  }
  for (unsigned n = 0; n + 1 < count; n++)
    if (options[n] == 5) snprintf(values[n], (size_t)values[n + 1], "fake ptxas: %s", dlerror());
  return leave(INVALID_IMAGE);
}
int cuModuleUnload(void *module) {
  BEGIN(1);
  if (is_needed(0, module)) return leave(IN_USE);
  fake_modules--;
  return leave(dlclose(module) ? INVALID_VALUE : SUCCESS);
}
static void *symbol(void *module, const char *name, const char *suffix) {
  char text[512];
  snprintf(text, sizeof text, "%s%s", name, suffix);
  return dlsym(module, text);
}
int cuModuleGetFunction(void **result, void *module, const char *name) {
  BEGIN(1);
  struct function *f = calloc(1, sizeof *f);
  f->module = module;
  f->entry = (kernel_entry)symbol(module, name, ".entry");
  f->facts = symbol(module, name, ".facts");
  f->shared = symbol(module, name, ".shared");
  if (f->shared) {
    Dl_info info;
    ElfW(Sym) *entry = 0;
    dladdr1(f->shared, &info, (void **)&entry, RTLD_DL_SYMENT);
    f->shared_bytes = entry->st_size;
  }
  *result = f;
  return leave(f->entry && f->facts ? SUCCESS : NOT_FOUND);
}
/* Shared memory of a block that launches may ask for (8): 99 KB, 48 KB without this. */
int cuFuncSetAttribute(struct function *f, int attribute, int value) {
  BEGIN(1);
  if (attribute != 8 || value < 0 || value > 99 * 1024) return leave(INVALID_VALUE);
  f->allowed_bytes = (unsigned)value;
  return leave(SUCCESS);
}
int cuLaunchKernel(struct function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, struct stream *s, void **params, void **extra) {
  BEGIN(1);
  (void)extra;
  if (gy != 1 || gz != 1 || by != 1 || bz != 1 || !gx || !bx || bx > 1024) return leave(INVALID_VALUE);
  if (shared != (unsigned)f->facts[2] || (shared > 48 * 1024 && shared > f->allowed_bytes)) return leave(INVALID_VALUE);
  fake_kernel_launches++;
  struct work *w = add(s, LAUNCH);
  w->function = f;
  w->blocks = (int)gx;
  w->threads = (int)bx;
  for (int n = 0; n < f->facts[0]; n++) w->arguments[n] = *(void **)params[n]; /* the driver copies parameters */
  return leave(SUCCESS);
}

int cuStreamCreate(struct stream **stream, unsigned flags) {
  BEGIN(1);
  (void)flags;
  struct stream *s = calloc(1, sizeof *s);
  s->device = (int)(current - contexts);
  s->last = &s->first;
  s->next = streams;
  streams = *stream = s;
  return leave(SUCCESS);
}
int cuStreamSynchronize(struct stream *s) {
  BEGIN(1);
  return leave(s->graph ? CAPTURED : finish(s, 0));
}
static struct graph *new_graph(void) {
  struct graph *g = calloc(1, sizeof *g);
  g->last = &g->first;
  fake_graphs++;
  return g;
}
int cuStreamBeginCapture_v2(struct stream *s, int mode) {
  BEGIN(1);
  if (s->graph || mode < 0 || mode > 2) return leave(INVALID_VALUE);
  s->graph = new_graph();
  return leave(SUCCESS);
}
int cuStreamEndCapture(struct stream *s, struct graph **graph) {
  BEGIN(1);
  if (!s->graph) return leave(INVALID_VALUE);
  *graph = s->graph;
  s->graph = 0;
  return leave(SUCCESS);
}
static void append(struct graph *from, struct work ***last) {
  for (struct work *w = from->first; w; w = w->next) {
    struct work *again = malloc(sizeof *again);
    *again = *w;
    again->next = 0;
    **last = again;
    *last = &again->next;
  }
}
int cuGraphInstantiateWithFlags(struct graph **executable, struct graph *graph, unsigned long long flags) {
  BEGIN(1);
  if (flags) return leave(INVALID_VALUE);
  *executable = new_graph();
  append(graph, &(*executable)->last);
  return leave(SUCCESS);
}
int cuGraphLaunch(struct graph *executable, struct stream *s) {
  BEGIN(1);
  fake_graph_launches++;
  append(executable, &s->last);
  return leave(SUCCESS);
}
static int destroy_graph(struct graph *g) {
  while (g->first) {
    struct work *w = g->first;
    g->first = w->next;
    free(w);
  }
  free(g);
  fake_graphs--;
  return SUCCESS;
}
int cuGraphDestroy(struct graph *graph) {
  BEGIN(1);
  return leave(destroy_graph(graph));
}
int cuGraphExecDestroy(struct graph *executable) {
  BEGIN(1);
  return leave(destroy_graph(executable));
}
int cuStreamDestroy_v2(struct stream *stream) {
  BEGIN(1);
  finish(stream, 0);
  for (struct stream **s = &streams; *s; s = &(*s)->next)
    if (*s == stream) {
      *s = stream->next;
      free(stream);
      return leave(SUCCESS);
    }
  return leave(INVALID_VALUE);
}
int cuEventCreate(struct event **event, unsigned flags) {
  BEGIN(1);
  (void)flags;
  *event = calloc(1, sizeof **event);
  return leave(SUCCESS);
}
int cuEventRecord(struct event *event, struct stream *s) {
  BEGIN(1);
  event->stream = s;
  event->is_pending = 1;
  add(s, RECORD)->event = event;
  return leave(SUCCESS);
}
int cuEventSynchronize(struct event *event) {
  BEGIN(1);
  return leave(event->is_pending ? finish(event->stream, event) : SUCCESS);
}
int cuEventElapsedTime(float *milliseconds, struct event *start, struct event *end) {
  BEGIN(1);
  if (start->is_pending || end->is_pending) return leave(NOT_READY);
  *milliseconds =
      (float)((end->time.tv_sec - start->time.tv_sec) * 1e3 + (end->time.tv_nsec - start->time.tv_nsec) * 1e-6);
  return leave(SUCCESS);
}
int cuEventDestroy_v2(struct event *event) {
  BEGIN(1);
  if (event->is_pending) finish(event->stream, event);
  free(event);
  return leave(SUCCESS);
}
int cuGetErrorName(int code, const char **name) {
  *name = code == OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : code == INVALID_IMAGE   ? "CUDA_ERROR_INVALID_IMAGE"
          : code == INVALID_CONTEXT ? "CUDA_ERROR_INVALID_CONTEXT"
          : code == NOT_FOUND       ? "CUDA_ERROR_NOT_FOUND"
          : code == IN_USE          ? "FAKE_ERROR_IN_USE"
          : code == NOT_READY       ? "CUDA_ERROR_NOT_READY"
          : code == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : code == CAPTURED        ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
          : code == LAUNCH_FAILED   ? "CUDA_ERROR_LAUNCH_FAILED"
                                    : "CUDA_ERROR_INVALID_VALUE";
  return SUCCESS;
}
