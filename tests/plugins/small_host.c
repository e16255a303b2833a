/* Loads a library, calls its first pass with the graph of a file, and prints the result: a host for
   systems on which passlib itself is not installed. */
#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef _WIN32
static void* open_library(const char* path) { return LoadLibraryA(path); }
static void* look_up(void* library, const char* name) {
  return (void*)GetProcAddress(library, name);
}
static const char* reason(void) {
  static char text[32];
  snprintf(text, sizeof(text), "Windows error %lu", GetLastError());
  return text;
}
#else
static void* open_library(const char* path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }
static void* look_up(void* library, const char* name) { return dlsym(library, name); }
static const char* reason(void) { return dlerror(); }
#endif

typedef void (*any_t)(void);
typedef int (*number_t)(void);
typedef int (*pass_t)(any_t body, const char* graph, char** out, const char* const* keys,
                      const char* const* values, int num, const char* name, /* arguments: */
                      const char* const*, int, void* const*, const int64_t* const*, const int*,
                      const int*, const size_t*, const char* const*, const int*, /* states: */
                      const char* const*, int, void* const*, const int64_t* const*, const int*,
                      const int*, const size_t*, const char* const*, const int*, any_t allocate,
                      const void* allocator);

static any_t find(void* library, const char* name) {
  union {
    void* data;
    any_t function;
  } found;
  found.data = look_up(library, name);
  if (found.data != NULL) return found.function;
  fprintf(stderr, "%s\n", reason());
  exit(1);
}

int main(int count, char** arguments) {
  static char graph[1 << 16];
  FILE* file = count == 3 ? fopen(arguments[2], "r") : NULL;
  void* library = count == 3 ? open_library(arguments[1]) : NULL;
  const char* keys[] = {"by"};
  const char* values[] = {"log"};
  const char* name = NULL;
  any_t body = NULL;
  char* out = NULL;
  if (library == NULL || file == NULL) {
    fprintf(stderr, "cannot open the library or the file: %s\n", reason());
    return 1;
  }
  graph[fread(graph, 1, sizeof(graph) - 1, file)] = '\0';
  ((int (*)(int))find(library, "initialize"))(10901);
  ((void (*)(int, any_t*, const char**))find(library, "_passRegGet"))(0, &body, &name);
  if (!((pass_t)find(library, "_passCallGraphPass"))(
          body, graph, &out, keys, values, 1, name, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL,
          NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)) {
    fprintf(stderr, "the pass failed\n");
    return 1;
  }
  printf("%d %s\n%s\n", ((number_t)find(library, "_opVersion"))(), name, out);
  ((void (*)(void*))find(library, "_opCallFree"))(out);
  return 0;
}
