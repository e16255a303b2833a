/*
 * A library that declares the text in the environment variable DECLARATIONS, which is anything: FAIL
 * fails, NULL is none, LONG is beyond all limits.
 */
#include <stdlib.h>
#include <string.h>

static int pass(void) { return 1; }

int _opVersion(void) { return 11; }
int initialize(int version) { return version > 0; }
void _opCallFree(void* ptr) { free(ptr); }
int _passRegSize(void) { return 2; }
void _passRegGet(int idx, int (**body)(void), const char** name) {
  *body = pass;
  *name = idx == 0 ? "declaresText" : "declaresMore";
}
int _passCallGraphPass(void) { return 0; }

int _passlibDeclarations(const char** json) {
  const char* text = getenv("DECLARATIONS");
  *json = NULL;
  if (text == NULL || strcmp(text, "NULL") == 0) return 1;
  if (strcmp(text, "FAIL") == 0) return 0;
  if (strcmp(text, "LONG") == 0) {
    const size_t size = (size_t)32 << 20;
    char* spaces = malloc(size + 1); /* the library's until the process ends */
    memset(spaces, ' ', size);
    spaces[size] = '\0';
    text = spaces;
  }
  *json = text;
  return 1;
}
