/*
 * Operators in plain C, without the header: what the ABI asks for and nothing else.
 *
 * -DABI=n says which version it claims: before 10 states are made by a shorter call, before 11
 * nobody destroys them. -DNAME=name renames the stateless operator, -DTWICE registers it twice.
 * -DWITHOUT_PARSE, _TYPE, _SHAPE, _FORWARD leave out what must be set, -DWITHOUT_STATE that of a
 * subgraph operator, -DWITHOUT_ENTRY an entry point.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define STRING_(x) #x
#define STRING(x) STRING_(x)
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#ifndef NAME
#define NAME JOIN(plain_double, ABI)
#endif

typedef void (*any_t)(void);
static void there(void) {}

#ifdef WITHOUT_PARSE
#define PARSE NULL
#else
#define PARSE there
#endif
#ifdef WITHOUT_TYPE
#define TYPE NULL
#else
#define TYPE there
#endif
#ifdef WITHOUT_SHAPE
#define SHAPE NULL
#else
#define SHAPE there
#endif
#ifdef WITHOUT_FORWARD
#define FORWARDS 0
#else
#define FORWARDS 1
#endif
#ifdef WITHOUT_STATE
#define SUBGRAPH 1
#else
#define SUBGRAPH 0
#endif

int _opVersion(void) { return ABI; }
int initialize(int version) { (void)version; return 1; }
void _opCallFree(void* memory) { free(memory); }

#ifdef TWICE
static const char* names[] = {STRING(NAME), STRING(NAME)};
#else
static const char* names[] = {STRING(NAME), STRING(JOIN(NAME, _counter))};
#endif

int _opRegSize(void) { return 2; }

void _opRegGet(int idx, const char** name, int* is_subgraph, const char*** forward_ctx,
               any_t** forward, int* num_forward, const char*** backward_ctx, any_t** backward,
               int* num_backward, const char*** create_ctx, any_t** create, int* num_create,
               any_t* parse, any_t* type, any_t* stype, any_t* shape, any_t* mutate) {
  /* Twice the same device, as a library says that was asked before. */
  static const char* devices[] = {"cpu", "cpu"};
  static any_t functions[] = {there, there};
  const int stateful = idx == 1 && SUBGRAPH == 0;
  *name = names[idx];
  *is_subgraph = SUBGRAPH;
  *forward_ctx = *backward_ctx = *create_ctx = devices;
  *forward = *backward = *create = functions;
  *num_forward = stateful || SUBGRAPH ? 0 : 2 * FORWARDS;
  *num_backward = 0;
  *num_create = stateful ? 2 : 0;
  *parse = PARSE;
  *type = TYPE;
  *shape = SHAPE;
  *stype = *mutate = there;
}

static const char* find(const char* const* keys, const char* const* vals, int num) {
  for (int i = 0; i < num; ++i) {
    if (strcmp(keys[i], "how") == 0) return vals[i];
  }
  return "";
}

int _opCallParseAttrs(any_t fp, const char* const* keys, const char* const* vals, int num,
                      int* num_in, int* num_out) {
  (void)fp, (void)keys, (void)vals, (void)num;
  *num_in = *num_out = 1;
  return 1;
}

static unsigned** copy_shape(unsigned** shapes, const int* dims) {
  unsigned** copy = malloc(sizeof(unsigned*));
  copy[0] = malloc(sizeof(unsigned) * (size_t)(dims[0] + 1));
  memcpy(copy[0], shapes[0], sizeof(unsigned) * (size_t)dims[0]);
  return copy;
}

int _opCallInferShape(any_t fp, const char* const* keys, const char* const* vals, int num,
                      unsigned** inshapes, int* indims, int num_in, unsigned*** mod_inshapes,
                      int** mod_indims, unsigned*** outshapes, int** outdims, int num_out) {
  const char* how = find(keys, vals, num);
  (void)fp, (void)num_in, (void)num_out;
  if (strcmp(how, "no shapes") == 0) return 1;
  *mod_inshapes = copy_shape(inshapes, indims);
  *outshapes = copy_shape(inshapes, indims);
  *mod_indims = malloc(sizeof(int));
  *outdims = malloc(sizeof(int));
  (*mod_indims)[0] = (*outdims)[0] = indims[0];
  if (strcmp(how, "negative rank") == 0) (*outdims)[0] = -3;
  if (strcmp(how, "rank of input") == 0) (*mod_indims)[0] = 1000000000;
  if (strcmp(how, "null shape") == 0) {
    free((*outshapes)[0]);
    (*outshapes)[0] = NULL;
  }
  if (strcmp(how, "half made") == 0) {
    memset(*outshapes, 0xAB, sizeof(unsigned*));
    return 0;
  }
  return 1;
}

int _opCallInferType(any_t fp, const char* const* keys, const char* const* vals, int num,
                     int* intypes, int num_in, int* outtypes, int num_out) {
  (void)fp, (void)keys, (void)vals, (void)num, (void)num_in, (void)num_out;
  outtypes[0] = intypes[0];
  return 1;
}

int _opCallInferSType(any_t fp, const char* const* keys, const char* const* vals, int num,
                      int* intypes, int num_in, int* outtypes, int num_out) {
  return _opCallInferType(fp, keys, vals, num, intypes, num_in, outtypes, num_out);
}

int _opCallMutateInputs(any_t fp, const char* const* keys, const char* const* vals, int num,
                        int** indices, int* count) {
  const char* how = find(keys, vals, num);
  (void)fp;
  *count = 0;
  if (strcmp(how, "negative count") == 0) *count = -1;
  if (strcmp(how, "no indices") == 0) *count = 3;
  if (strcmp(how, "huge count") == 0) *count = 2000000000;
  (void)indices;
  return 1;
}

static int64_t count_elements(const int64_t* shape, int dims) {
  int64_t count = 1;
  for (int i = 0; i < dims; ++i) count *= shape[i];
  return count;
}

#define BLOCKS                                                                                    \
  const int64_t **inshapes, int *indims, void **indata, int *intypes, size_t *inids,              \
      const char **indev, int *indevid, int num_in, const int64_t **outshapes, int *outdims,      \
      void **outdata, int *outtypes, size_t *outids, const char **outdev, int *outdevid,          \
      int num_out, void *(*cpu_malloc)(void *, int), void *cpu_alloc,                             \
      void *(*gpu_malloc)(void *, int), void *gpu_alloc, void *stream,                            \
      void (*sparse_malloc)(void *, int, int, int, void **, int64_t **, int64_t **),              \
      void *sparse_alloc, int *instypes, int *outstypes, void **in_indices, void **out_indices,   \
      void **in_indptr, void **out_indptr, int64_t *in_indices_shapes,                            \
      int64_t *out_indices_shapes, int64_t *in_indptr_shapes, int64_t *out_indptr_shapes,         \
      void *rng_cpu, void *rng_gpu

#ifndef WITHOUT_ENTRY
/* Twice its input; fails unless each argument is what the ABI says. */
int _opCallFCompute(any_t fp, const char* const* keys, const char* const* vals, int num, BLOCKS) {
  (void)fp, (void)keys, (void)vals, (void)num, (void)gpu_alloc, (void)out_indices_shapes;
  (void)in_indptr_shapes, (void)out_indptr_shapes;
  if (num_in != 1 || num_out != 1 || intypes[0] != 0 || outtypes[0] != 0) return 0;
  if (strcmp(indev[0], "cpu") || strcmp(outdev[0], "cpu") || indevid[0] || outdevid[0]) return 0;
  if (inids[0] == outids[0] || indims[0] != outdims[0] || instypes[0] || outstypes[0]) return 0;
  if (gpu_malloc == NULL || stream != NULL || rng_cpu == NULL || rng_gpu != NULL) return 0;
  if (in_indices[0] || out_indices[0] || in_indptr[0] || out_indptr[0]) return 0;
  if (in_indices_shapes[0] || sparse_malloc == NULL || sparse_alloc == NULL) return 0;
  const int64_t count = count_elements(inshapes[0], indims[0]);
  if (count != count_elements(outshapes[0], outdims[0])) return 0;
  float* scratch = cpu_malloc(cpu_alloc, (int)(count * (int64_t)sizeof(float)));
  for (int64_t i = 0; i < count; ++i) scratch[i] = 2 * ((float*)indata[0])[i];
  memcpy(outdata[0], scratch, (size_t)count * sizeof(float));
  return 1;
}
#endif

/* A state is no C++ object here: the host must not take it for one. */
typedef struct {
  double calls;
  double zeros;
} counter_t;

static int alive = 0;

#if ABI < 10
int _opCallCreateOpState(any_t fp, const char* const* keys, const char* const* vals, int num,
                         void** state) {
#else
int _opCallCreateOpState(any_t fp, const char* const* keys, const char* const* vals, int num,
                         const char* dev_type, int dev_id, unsigned** inshapes, int* indims,
                         int num_in, const int* intypes, void** state) {
  if (strcmp(dev_type, "cpu") || dev_id || num_in != 1 || intypes[0]) return 0;
  if (indims[0] != 1 || inshapes[0][0] != 3) return 0;
#endif
  (void)fp, (void)keys, (void)vals, (void)num;
  *state = calloc(1, sizeof(counter_t));
  ++alive;
  return 1;
}

#if ABI >= 11
void _opCallDestroyOpState(void* state) {
  --alive;
  free(state);
}
#endif

/* Its input, plus the number of the call, plus 100 times the number of states. */
int _opCallFStatefulCompute(int is_forward, void* state, BLOCKS) {
  counter_t* counter = state;
  (void)cpu_malloc, (void)cpu_alloc, (void)gpu_malloc, (void)gpu_alloc, (void)stream;
  (void)sparse_malloc, (void)sparse_alloc, (void)instypes, (void)outstypes, (void)in_indices;
  (void)out_indices, (void)in_indptr, (void)out_indptr, (void)in_indices_shapes;
  (void)out_indices_shapes, (void)in_indptr_shapes, (void)out_indptr_shapes, (void)rng_cpu;
  (void)rng_gpu, (void)inids, (void)outids, (void)indev, (void)outdev, (void)indevid;
  (void)outdevid, (void)intypes, (void)outtypes, (void)outshapes, (void)outdims, (void)num_out;
  (void)num_in;
  if (!is_forward) return 0;
  counter->calls += 1;
  const int64_t count = count_elements(inshapes[0], indims[0]);
  for (int64_t i = 0; i < count; ++i) {
    ((float*)outdata[0])[i] = ((float*)indata[0])[i] + (float)counter->calls + 100 * (float)alive;
  }
  return 1;
}
