/*
 * A library in plain C, without the header: what the ABI asks for and nothing else.
 *
 * -DABI=n says which version it claims. As in MXNet, versions up to 7 have no messages.
 * -DRESULTS registers passes that give back wrong text, -DSAME_NAME two of one name, -DNO_FREE
 * leaves out _opCallFree, -DNO_INITIALIZE initialize, -DMISSING_SYMBOL a part that it was to be
 * linked with.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define STRING_(x) #x
#define STRING(x) STRING_(x)

typedef const char* (*body_t)(const char* graph);

static const char* copies(const char* graph) { return graph; }

#if ABI > 7
static int failed = 0;
static const char* fails(const char* graph) {
  (void)graph;
  ++failed;
  return NULL;
}
int _msgSize(void) { return failed; }
void _msgGet(int idx, const char** msg) { *msg = idx == 0 ? "first failure" : "later failure"; }
#endif

#ifdef RESULTS
static int success_of_null = 0;
static const char* gives_null(const char* graph) {
  (void)graph;
  success_of_null = 1;
  return NULL;
}
static const char* gives_empty(const char* graph) { (void)graph; return ""; }
static const char* gives_broken(const char* graph) {
  (void)graph;
  return "{\"nodes\": [,], \"arg_nodes\": [], \"heads\": []}";
}
static const char* gives_truncated(const char* graph) {
  static char* cut = NULL;
  free(cut);
  const size_t size = strlen(graph) / 2;
  cut = malloc(size + 1);
  memcpy(cut, graph, size);
  cut[size] = '\0';
  return cut;
}
static const char* gives_bytes(const char* graph) {
  (void)graph;
  return "{\"nodes\": [{\"op\": \"null\", \"name\": \"caf\xE9\", \"inputs\": []}], "
         "\"arg_nodes\": [0], \"heads\": [[0, 0, 0]]}";
}
static const char* gives_number(const char* graph) { (void)graph; return "42"; }
static const char* gives_no_heads(const char* graph) {
  (void)graph;
  return "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}], "
         "\"arg_nodes\": [0], \"heads\": []}";
}
static const char* gives_far_edge(const char* graph) {
  (void)graph;
  return "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}, "
         "{\"op\": \"relu\", \"name\": \"far\", \"inputs\": [[9, 0, 0]]}], "
         "\"arg_nodes\": [0], \"heads\": [[1, 0, 0]]}";
}
#endif

static const struct {
  const char* name;
  body_t body;
} passes[] = {
#ifdef RESULTS
    {"givesNull", gives_null},           {"givesEmpty", gives_empty},
    {"givesBroken", gives_broken},       {"givesTruncated", gives_truncated},
    {"givesBytes", gives_bytes},         {"givesNumber", gives_number},
    {"givesNoHeads", gives_no_heads},    {"givesFarEdge", gives_far_edge},
#elif defined(SAME_NAME)
    {"plainTwin", copies},               {"plainTwin", copies},
#else
    {"plainCopy" STRING(ABI), copies},
#if ABI > 7
    {"plainFail" STRING(ABI), fails},
#endif
#endif
};

int _opVersion(void) { return ABI; }
#ifdef MISSING_SYMBOL
void neverDefinedAnywhere(void);
int initialize(int version) {
  neverDefinedAnywhere();
  return version > 0;
}
#elif !defined(NO_INITIALIZE)
int initialize(int version) { return version > 0; }
#endif
#ifndef NO_FREE
void _opCallFree(void* ptr) { free(ptr); }
#endif
int _passRegSize(void) { return (int)(sizeof(passes) / sizeof(passes[0])); }
void _passRegGet(int idx, body_t* body, const char** name) {
  *body = passes[idx].body;
  *name = passes[idx].name;
}

#define PARAMS(kind)                                                                    \
  const char *const *kind##_names, int num_##kind, void *const *kind##_data,            \
      const int64_t *const *kind##_shapes, const int *kind##_dims, const int *kind##_types, \
      const size_t *kind##_ids, const char *const *kind##_devices, const int *kind##_device_ids

int _passCallGraphPass(body_t body, const char* graph, char** out, const char* const* keys,
                       const char* const* values, int num, const char* name, PARAMS(arg),
                       PARAMS(aux), void* allocate, const void* allocator) {
  (void)keys, (void)values, (void)num, (void)name, (void)allocate, (void)allocator;
  (void)arg_names, (void)num_arg, (void)arg_data, (void)arg_shapes, (void)arg_dims;
  (void)arg_types, (void)arg_ids, (void)arg_devices, (void)arg_device_ids;
  (void)aux_names, (void)num_aux, (void)aux_data, (void)aux_shapes, (void)aux_dims;
  (void)aux_types, (void)aux_ids, (void)aux_devices, (void)aux_device_ids;
  const char* text = body(graph);
#ifdef RESULTS
  if (text == NULL && success_of_null) {
    *out = NULL;
    return 1;
  }
#endif
  if (text == NULL) return 0;
  *out = malloc(strlen(text) + 1);
  strcpy(*out, text);
  return 1;
}
