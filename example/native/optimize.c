/* Loads a model, lists the passes, runs a pipeline, saves the result: optimize MODEL OUT PIPELINE [LIBRARY]. */
#include <passlib.h>
#include <stdio.h>

static int fail(passlib_error* error) {
  fprintf(stderr, "optimize: %s\n", passlib_error_message(error));
  passlib_error_free(error);
  return 1;
}

int main(int argc, char** argv) {
  passlib_error* error = NULL;
  passlib_session* session;
  passlib_model* model;
  size_t number;
  if (argc < 4) return fprintf(stderr, "usage: optimize MODEL OUT PIPELINE [LIBRARY]\n"), 1;

  session = passlib_session_new(NULL, &error);
  if (session == NULL) return fail(error);
  if (argc > 4 && !passlib_session_load(session, argv[4], 0, &error)) return fail(error);
  for (number = 0; number < passlib_session_pass_count(session); ++number) {
    passlib_pass_info pass;
    pass.size = sizeof pass;
    if (!passlib_session_pass(session, number, &pass, &error)) return fail(error);
    printf("%s: %s\n", pass.name, pass.description);
  }

  model = passlib_model_load(argv[1], &error);
  if (model == NULL) return fail(error);
  printf("%zu nodes\n", passlib_model_node_count(model));
  if (!passlib_model_run(model, session, argv[3], NULL, &error)) return fail(error);
  if (!passlib_model_save(model, argv[2], &error)) return fail(error);
  printf("%zu nodes in %s\n", passlib_model_node_count(model), argv[2]);

  passlib_model_free(model);
  passlib_session_free(session);
  return 0;
}
