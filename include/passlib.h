/* passlib for C: models, passes of libraries and rules, without Python. docs/native.md shows it.

   Objects are opaque. The caller owns a result of type `x*` without `const`, and frees it with
   passlib_x_free; `const` pointers belong to the object that was asked, and live as long as it does
   not change. Free functions take null. Texts are UTF-8 and end in a zero.

   Every function that can fail takes a `passlib_error**` last, which may be null. A function that
   returns a pointer returns null when it fails, one that returns an int returns 0, and 1 when it
   succeeds; then *error is a new error, which the caller frees. A successful call leaves *error as
   it is. A failed call changes nothing else.

   Threads may use different objects at the same time, and may read one object at the same time. A
   session may run pipelines in several threads, but must not load anything meanwhile. */
#ifndef PASSLIB_H_
#define PASSLIB_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface: functions and members of structs are only added. */
#define PASSLIB_API_VERSION 1

#if defined(PASSLIB_BUILDING) && defined(__GNUC__)
#define PASSLIB_API __attribute__((visibility("default")))
#else
#define PASSLIB_API
#endif

typedef struct passlib_error passlib_error;
typedef struct passlib_session passlib_session; /* the passes that are known */
typedef struct passlib_model passlib_model;     /* a graph with its weights, from a file */
typedef struct passlib_edit passlib_edit;       /* a copy of a model's graph, to be changed */
typedef struct passlib_node passlib_node;       /* a node of an edit, which owns it */

/* The version of the library, such as "0.1.0". */
PASSLIB_API const char* passlib_version(void);
/* The version of the interface that the library has, at least PASSLIB_API_VERSION of older headers.
 */
PASSLIB_API int passlib_api_version(void);

/* Errors. */

typedef enum passlib_error_kind {
  PASSLIB_USAGE = 1,       /* an argument, a name or an option is wrong */
  PASSLIB_SYSTEM = 2,      /* the system failed: no such file, no space, no memory */
  PASSLIB_LOAD = 3,        /* a library could not be loaded */
  PASSLIB_FORMAT = 4,      /* a file does not follow its format */
  PASSLIB_GRAPH = 5,       /* a graph is not sound */
  PASSLIB_PASS = 6,        /* a pass failed */
  PASSLIB_UNSUPPORTED = 7, /* well-formed, but not supported here; the message names it */
  PASSLIB_INTERNAL = 8     /* a defect of passlib */
} passlib_error_kind;

PASSLIB_API passlib_error_kind passlib_error_get_kind(const passlib_error* error);
/* A sentence that names the thing and the way out. */
PASSLIB_API const char* passlib_error_message(const passlib_error* error);
/* Where the mistake is: in bytes of a file, in characters of a pipeline; -1 if no place is known.
 */
PASSLIB_API int64_t passlib_error_offset(const passlib_error* error);
PASSLIB_API void passlib_error_free(passlib_error* error);

/* Frees text and bytes that a function returned. */
PASSLIB_API void passlib_free(void* memory);

/* Sessions. */

/* Options of a session. Set `size` to sizeof(passlib_session_options), everything else to 0. */
typedef struct passlib_session_options {
  size_t size;
  /* Path of the library of standard passes, beside which the folder `rules` has the others; null
     for the one that is installed with libpasslib. */
  const char* standard_passes;
} passlib_session_options;

/* Makes a session that knows the standard passes. `options` may be null. */
PASSLIB_API passlib_session* passlib_session_new(const passlib_session_options* options,
                                                 passlib_error** error);
PASSLIB_API void passlib_session_free(passlib_session* session);

/* Loads a library of passes, which runs its code, or a file of rules, whose name ends in `.rules`;
   these become a pass with the name of the file without the suffix. `replaces`: whether names that
   are taken are taken over. Libraries stay loaded until the process ends. */
PASSLIB_API int passlib_session_load(passlib_session* session, const char* path, int replaces,
                                     passlib_error** error);

/* The declaration of a pass or a partitioner. Set `size` to sizeof(passlib_pass_info) before the
   call. */
typedef struct passlib_pass_info {
  size_t size;
  const char* name;
  const char* description; /* "" if it declares nothing */
  const char* source;      /* path of the library or the file of rules */
  size_t option_count;
  int is_exact;    /* keeps every bit of the results */
  int is_declared; /* else it takes any options */
  int supports_onnx;
  int is_partitioner;
  int enters_functions; /* also changes the bodies of local functions of ONNX models */
} passlib_pass_info;

/* An option that a pass declares. Set `size` before the call. */
typedef struct passlib_option_info {
  size_t size;
  const char* name;
  const char* description;
  const char* kind;     /* "boolean", "integer", "real", "text" */
  const char* accepted; /* in words: "a whole number from 0 to 3" */
  const char* preset;   /* the default, as pipelines spell it */
  int is_list;
} passlib_option_info;

PASSLIB_API size_t passlib_session_pass_count(const passlib_session* session);
/* Describes a pass by its number. The texts live until the session loads something or is freed. */
PASSLIB_API int passlib_session_pass(const passlib_session* session, size_t number,
                                     passlib_pass_info* info, passlib_error** error);
PASSLIB_API int passlib_session_option(const passlib_session* session, size_t pass, size_t number,
                                       passlib_option_info* info, passlib_error** error);

/* Models. */

/* Reads an ONNX file, which stays mapped, with the files in its folder that have weights of it:
   they must not be changed while models of it live. Or a model of MXNet: its graph
   `x-symbol.json`, one of its weight files `x-0000.params`, which stays mapped, or `x`; the weights
   are those of the last epoch unless the path has another one. A graph without weights is fine. */
PASSLIB_API passlib_model* passlib_model_load(const char* path, passlib_error** error);
/* Reads a copy of an ONNX model in memory. */
PASSLIB_API passlib_model* passlib_model_read(const void* data, size_t size, passlib_error** error);
/* Copies a model; both share weights. */
PASSLIB_API passlib_model* passlib_model_copy(const passlib_model* model, passlib_error** error);
PASSLIB_API void passlib_model_free(passlib_model* model);

/* The dialect of a model: "onnx" or "mxnet"; null without a model. */
PASSLIB_API const char* passlib_model_dialect(const passlib_model* model);

/* The bytes of the files that an ONNX model was read from, those with weights of its graphs
   included, or of the memory; 0 for MXNet, and without a model. Passes may change the result. */
PASSLIB_API size_t passlib_model_file_bytes(const passlib_model* model);

/* Calls `visit` with each warning about a model that was read, a clause: a newer operator set, or
   an operator that ONNX lacks and no library of the session has. The text lives for the call of
   `visit`, which must not throw. */
PASSLIB_API int passlib_model_warnings(const passlib_model* model, const passlib_session* session,
                                       void (*visit)(const char* text, void* context),
                                       void* context, passlib_error** error);

/* Writes a model in its dialect, as a whole or not at all. In an ONNX file, parts that no pass
   changed keep their bytes. Weights in other files stay in files next to the model, under new names
   where names are taken; weights of more than 2 GiB go to such a file. For MXNet, the path is that
   of the graph, `x-symbol.json` or `x.json`, or `x`, and the weights go to `x-0000.params`, with
   the number of the epoch that was read. */
PASSLIB_API int passlib_model_save(const passlib_model* model, const char* path,
                                   passlib_error** error);
/* The same, and calls `visit` with the path of each file that it wrote, that of the graph first. */
PASSLIB_API int passlib_model_save_files(const passlib_model* model, const char* path,
                                         void (*visit)(const char* file, void* context),
                                         void* context, passlib_error** error);
/* The same into memory, which the caller frees with passlib_free; PASSLIB_UNSUPPORTED if the model
   has weights in other files, or is of MXNet. */
PASSLIB_API int passlib_model_serialize(const passlib_model* model, void** data, size_t* size,
                                        passlib_error** error);

/* What a step of a pipeline did; simplify and clean have a step for each pass that they ran. */
typedef struct passlib_step_info {
  size_t size;
  const char* name;
  const char* text;           /* with the options, as pipelines spell it */
  const passlib_model* model; /* its result, or its input if it failed; for the call alone */
  double seconds;
  size_t changed_node_count; /* operators of the graph that are new, removed or changed; 0 unless
                                counts_changes */
  int is_modified;           /* whether anything changed */
  int has_failed;
} passlib_step_info;

/* Options of a run. Set `size` to sizeof(passlib_run_options), everything else to 0. */
typedef struct passlib_run_options {
  size_t size;
  /* Gets the output of passes on std::cout, after each pass, in the thread of the call; null drops
   * it. Must not throw. */
  void (*print)(const char* text, size_t length, void* context);
  void* context;
  /* Gets each step when it ends, in the thread of the call; null for none. Must not throw. */
  void (*step)(const passlib_step_info* step, void* context);
  int counts_changes; /* for changed_node_count, which takes time on large graphs */
} passlib_run_options;

/* Runs a pipeline such as "removeDeadNodes, repeat<4>(mergeEqualNodes{parameters=true})" on a
   model. All steps are checked before anything runs, also that they are for its dialect; if one
   fails, the model is as it was.
   `options` may be null. */
PASSLIB_API int passlib_model_run(passlib_model* model, const passlib_session* session,
                                  const char* pipeline, const passlib_run_options* options,
                                  passlib_error** error);
/* Checks a pipeline, and returns its text without the steps of some names, which it must have: ""
   if no step is left, which is no pipeline. Named pipelines in it, such as simplify, skip those
   that are names of standard passes. The caller frees the text with passlib_free. */
PASSLIB_API char* passlib_pipeline_without(const passlib_session* session, const char* pipeline,
                                           const char* const* names, size_t count,
                                           passlib_error** error);

/* Checks a pipeline, and returns its text with values of an option of its first step that is a
   named pipeline, such as simplify, and in no repeat: behind those that it has there if the option
   is a list, else in their place. Null, without an error, if it has no such step. The caller frees
   the text with passlib_free. */
PASSLIB_API char* passlib_pipeline_with(const passlib_session* session, const char* pipeline,
                                        const char* option, const char* const* values, size_t count,
                                        passlib_error** error);

/* The graph of a model: its nodes in their order. Variables, which are inputs and weights, have the
 * operator "null". */

/* Set `size` before the call. */
typedef struct passlib_node_info {
  size_t size;
  const char* name;
  const char* op;
  size_t input_count;
  size_t output_count; /* at least 1 */
  size_t attribute_count;
  size_t graph_count; /* nested graphs, which this interface does not enter */
  int is_weight;      /* a variable with an array */
} passlib_node_info;

/* One output of a node. */
typedef struct passlib_value {
  size_t node; /* by its number */
  size_t output;
} passlib_value;

PASSLIB_API size_t passlib_model_node_count(const passlib_model* model);
/* Texts live until the model changes or is freed. */
PASSLIB_API int passlib_model_node(const passlib_model* model, size_t node, passlib_node_info* info,
                                   passlib_error** error);
PASSLIB_API int passlib_model_node_input(const passlib_model* model, size_t node, size_t number,
                                         passlib_value* value, passlib_error** error);
/* An attribute by its number, in the order of the keys. The caller frees key and text with
   passlib_free; either pointer may be null. */
PASSLIB_API int passlib_model_node_attribute(const passlib_model* model, size_t node, size_t number,
                                             char** key, char** text, passlib_error** error);
/* The outputs of the graph. */
PASSLIB_API size_t passlib_model_output_count(const passlib_model* model);
/* The value of an output, and its name as it is written, which the caller frees; either pointer may
 * be null. */
PASSLIB_API int passlib_model_output(const passlib_model* model, size_t number,
                                     passlib_value* value, char** name, passlib_error** error);

/* Calls `visit` for each operator that occurs, in alphabetical order, with how often: in the graph
   and, in a model of ONNX, in those nested in it, without variables. */
PASSLIB_API int passlib_model_count_operators(const passlib_model* model,
                                              void (*visit)(const char* op, size_t count,
                                                            void* context),
                                              void* context, passlib_error** error);

/* A weight. Set `size` before the call. */
typedef struct passlib_array_info {
  size_t size;
  int32_t type; /* ONNX's number of the element type: 1 is float */
  size_t dim_count;
  const int64_t* dims;
  const void* data; /* in C order, little endian, maybe not aligned, elements of 4 bits two in a
                       byte; null while it is still to be computed */
  size_t byte_count;
} passlib_array_info;

/* The weight of a variable, by its name. */
PASSLIB_API int passlib_model_weight(const passlib_model* model, const char* name,
                                     passlib_array_info* info, passlib_error** error);

/* Changes of a graph, with the verbs of lib_api.h. */

/* Starts to change a copy of the graph of a model, which must live as long as the edit. Weights
   follow variables that are renamed. */
PASSLIB_API passlib_edit* passlib_edit_begin(passlib_model* model, passlib_error** error);
/* Checks the graph, and gives it to the model. Then, or after passlib_edit_free, the edit and its
   nodes are gone; if this fails, the edit is gone as well and the model is as it was. It fails if
   the model was changed since the edit began. */
PASSLIB_API int passlib_edit_finish(passlib_edit* edit, passlib_error** error);
/* Discards the changes. */
PASSLIB_API void passlib_edit_free(passlib_edit* edit);

/* The node of a name; null, without an error, if there is none. */
PASSLIB_API passlib_node* passlib_edit_find(passlib_edit* edit, const char* name);
/* Adds an operator under a free name like `name`. Its inputs: pairs of nodes and numbers of
 * outputs. */
PASSLIB_API passlib_node* passlib_edit_add(passlib_edit* edit, const char* op, const char* name,
                                           passlib_node* const* inputs, const size_t* outputs,
                                           size_t count, passlib_error** error);
/* Sets an attribute to a text, or removes it if the text is null. */
PASSLIB_API int passlib_edit_set_attribute(passlib_edit* edit, passlib_node* node, const char* key,
                                           const char* text, passlib_error** error);
/* Sets input `input` of `node` to an output of `from`. */
PASSLIB_API int passlib_edit_connect(passlib_edit* edit, passlib_node* from, size_t output,
                                     passlib_node* node, size_t input, passlib_error** error);
/* Lets all uses of one value, outputs of the graph included, use another. */
PASSLIB_API int passlib_edit_replace(passlib_edit* edit, passlib_node* from, size_t output,
                                     passlib_node* by, size_t by_output, passlib_error** error);
/* Removes a node whose results nothing uses. */
PASSLIB_API int passlib_edit_remove(passlib_edit* edit, passlib_node* node, passlib_error** error);
PASSLIB_API int passlib_edit_rename(passlib_edit* edit, passlib_node* node, const char* name,
                                    passlib_error** error);

#ifdef __cplusplus
}
#endif

#endif /* PASSLIB_H_ */
