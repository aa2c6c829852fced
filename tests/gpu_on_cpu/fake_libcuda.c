/* The functions of the CUDA driver that Intarsia calls, on the memory of the host. Kernels run as their CPU form:
   the image of a module is the path of a shared library (cpu_kernels.py), and a launch runs its grid at once.
   It counts allocations and copies, so that tests see what is uploaded again. FAKE_CUDA_BYTES limits its memory. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_IMAGE = 200, NOT_FOUND = 500, LAUNCH_FAILED = 719 };

typedef void (*kernel_entry)(void **);
int run_grid(kernel_entry, void **, int, int, void *, size_t, int, int);

struct function { kernel_entry entry; int32_t *facts; void *shared; size_t shared_bytes; };
struct block { char *start; size_t size; struct block *next; };

static struct block *blocks;
static size_t used_bytes;
size_t fake_uploaded_bytes, fake_modules;
int fake_device_count = 1, fake_is_descending;

static struct block *block_of(uint64_t address, size_t size) {
  for (struct block *b = blocks; b; b = b->next)
    if ((char *)address >= b->start && (char *)address + size <= b->start + b->size) return b;
  return 0;
}

size_t fake_used_bytes(void) { return used_bytes; }
int cuInit(unsigned flags) { return (int)flags; }
int cuDriverGetVersion(int *version) { *version = 13000; return SUCCESS; }
int cuDeviceGetCount(int *count) { *count = fake_device_count; return SUCCESS; }
int cuDeviceGet(int *device, int number) { *device = number; return SUCCESS; }
int cuDeviceGetName(char *name, int size, int device) {
  snprintf(name, (size_t)size, "Fake GPU %d", device);
  return SUCCESS;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device;
  *value = attribute == 75 ? 8 : attribute == 76 ? 0 : 4;
  return SUCCESS;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { (void)device; *context = &blocks; return SUCCESS; }
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return SUCCESS; }
int cuCtxSetCurrent(void *context) { return context == &blocks ? SUCCESS : INVALID_VALUE; }

int cuMemAlloc_v2(uint64_t *address, size_t size) {
  const char *limit = getenv("FAKE_CUDA_BYTES");
  if (!size) return INVALID_VALUE;
  if (limit && used_bytes + size > strtoull(limit, 0, 10)) return OUT_OF_MEMORY;
  struct block *b = malloc(sizeof *b);
  b->start = aligned_alloc(512, (size + 511) / 512 * 512);
  memset(b->start, 0xFF, size); /* NaN: memory of a GPU holds anything */
  b->size = size;
  b->next = blocks;
  blocks = b;
  used_bytes += size;
  *address = (uint64_t)b->start;
  return SUCCESS;
}
int cuMemFree_v2(uint64_t address) {
  for (struct block **b = &blocks; *b; b = &(*b)->next)
    if ((*b)->start == (char *)address) {
      struct block *gone = *b;
      *b = gone->next;
      used_bytes -= gone->size;
      free(gone->start);
      free(gone);
      return SUCCESS;
    }
  return INVALID_VALUE;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream) {
  (void)stream;
  if (!block_of(to, size)) return INVALID_VALUE;
  fake_uploaded_bytes += size;
  memcpy((void *)to, from, size);
  return SUCCESS;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream) {
  (void)stream;
  if (!block_of(from, size)) return INVALID_VALUE;
  memcpy(to, (void *)from, size);
  return SUCCESS;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream) {
  (void)stream;
  if (!block_of(to, size) || !block_of(from, size)) return INVALID_VALUE;
  memcpy((void *)to, (void *)from, size);
  return SUCCESS;
}

int cuModuleLoadDataEx(void **module, const char *image, unsigned count, int *options, void **values) {
  *module = dlopen(image, RTLD_NOW | RTLD_LOCAL);
  if (*module) {
    fake_modules++;
    return SUCCESS;
  }
  for (unsigned n = 0; n + 1 < count; n++)
    if (options[n] == 5) snprintf(values[n], (size_t)values[n + 1], "fake ptxas: %s", dlerror());
  return INVALID_IMAGE;
}
int cuModuleUnload(void *module) {
  fake_modules--;
  return dlclose(module) ? INVALID_VALUE : SUCCESS;
}
static void *symbol(void *module, const char *name, const char *suffix) {
  char text[512];
  snprintf(text, sizeof text, "%s%s", name, suffix);
  return dlsym(module, text);
}
int cuModuleGetFunction(void **result, void *module, const char *name) {
  struct function *f = calloc(1, sizeof *f);
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
  return f->entry && f->facts ? SUCCESS : NOT_FOUND;
}
int cuLaunchKernel(struct function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra) {
  (void)stream;
  (void)extra;
  void *arguments[256];
  if (gy != 1 || gz != 1 || by != 1 || bz != 1 || shared || !gx || !bx || bx > 1024) return INVALID_VALUE;
  for (int n = 0; n < f->facts[0]; n++) {
    arguments[n] = *(void **)params[n];
    if (!block_of((uint64_t)arguments[n], 1)) return LAUNCH_FAILED;
  }
  int failed = run_grid(f->entry, arguments, (int)gx, (int)bx, f->shared, f->shared_bytes, f->facts[1],
                        fake_is_descending);
  return failed ? LAUNCH_FAILED : SUCCESS;
}

int cuStreamCreate(void **stream, unsigned flags) { (void)flags; *stream = &blocks; return SUCCESS; }
int cuStreamSynchronize(void *stream) { return stream == &blocks ? SUCCESS : INVALID_VALUE; }
int cuStreamDestroy_v2(void *stream) { return stream == &blocks ? SUCCESS : INVALID_VALUE; }
int cuEventCreate(struct timespec **event, unsigned flags) {
  (void)flags;
  *event = calloc(1, sizeof **event);
  return SUCCESS;
}
int cuEventRecord(struct timespec *event, void *stream) { (void)stream; return clock_gettime(CLOCK_MONOTONIC, event); }
int cuEventSynchronize(struct timespec *event) { (void)event; return SUCCESS; }
int cuEventElapsedTime(float *milliseconds, struct timespec *start, struct timespec *end) {
  *milliseconds = (float)((end->tv_sec - start->tv_sec) * 1e3 + (end->tv_nsec - start->tv_nsec) * 1e-6);
  return SUCCESS;
}
int cuEventDestroy_v2(void *event) { free(event); return SUCCESS; }
int cuGetErrorName(int code, const char **name) {
  *name = code == OUT_OF_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
          : code == INVALID_IMAGE ? "CUDA_ERROR_INVALID_IMAGE"
          : code == NOT_FOUND     ? "CUDA_ERROR_NOT_FOUND"
          : code == LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED"
                                  : "CUDA_ERROR_INVALID_VALUE";
  return SUCCESS;
}
