/*
 * lib_api.h: the header for libraries of graph passes, operators and partitioners.
 *
 * A model is a Graph of Nodes. A pass is a function that changes a Graph. This library registers a
 * pass that replaces each operator "Dropout" by its input:
 *
 *     #include "lib_api.h"
 *
 *     using namespace mxnet::ext;
 *
 *     MXReturnValue dropDropout(Graph* graph, const options_map_t& options) {
 *       std::vector<Node*> unused;
 *       for (Node* node : graph->nodes) {
 *         if (node->op != "Dropout") continue;
 *         graph->replace(NodeEntry(node, 0), node->inputs.at(0));
 *         unused.push_back(node);
 *       }
 *       graph->removeNodes(unused);
 *       return MX_SUCCESS;
 *     }
 *
 *     REGISTER_PASS(dropDropout).setBody(dropDropout);
 *
 *     MXReturnValue initialize(int version) { return MX_SUCCESS; }
 *
 * Compile and run it:
 *
 *     g++ -shared -fPIC -std=c++11 -I include drop_dropout.cc -o libdrop_dropout.so
 *
 *     import passlib
 *     passlib.library.load("libdrop_dropout.so")
 *     model = passlib.load("model.onnx").optimize_for("dropDropout")
 *
 * The library also loads in Apache MXNet 1.9 and 2.0: it implements version 11 of MXNet's extension
 * ABI, and sources written for MXNet's lib_api.h compile unchanged. The header needs C++11 to C++23
 * with GCC or Clang, and no other file. Several source files of a library may include it; all but
 * one define PASSLIB_NO_ENTRY_POINTS first, or none does.
 *
 * Contents: graphs, nodes and attributes; passes, options and REGISTER_PASS; tensors and
 * parameters; uses, orders and shapes of values; operators; partitioners; JSON; errors and
 * MX_ERROR_MSG; and the bodies of all these. Passes in text are in lib_patterns.h, which includes
 * this file. `make header` joins both files from the parts in header/.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MXNET_LIB_API_H_
#define MXNET_LIB_API_H_

#if !defined(__cplusplus) || __cplusplus < 201103L
#error "lib_api.h needs C++11 or later: compile with -std=c++11"
#elif !defined(__cpp_exceptions) && !defined(__EXCEPTIONS)
#error "lib_api.h reports errors by exceptions: compile without -fno-exceptions"
#else

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>
#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif
#if __cplusplus >= 201703L
#include <charconv>
#endif
#if defined(__NVCC__)
#include <cuda_runtime.h>
#include <curand_kernel.h>
#endif

// Macros that a source may define before it includes this header:
//
//   PASSLIB_NO_ENTRY_POINTS   declare types and helpers only, without exported C functions
//   PASSLIB_PATTERNS          include lib_patterns.h at the end of this header
//   PASSLIB_NO_GLOBAL_DLPACK  keep DLPack's names out of the global namespace
//   PASSLIB_JSON_MAX_DEPTH    nesting limit of JSON texts (default: 1,000,000)

// Only the C functions are exported. Everything else is hidden, so that two libraries in one
// process never share a registry.
#if defined(_WIN32)
#define PASSLIB_EXPORT __declspec(dllexport)
#else
#define PASSLIB_EXPORT __attribute__((visibility("default")))
#endif
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wattributes"  // of author's classes with hidden members
#endif
#pragma GCC visibility push(hidden)

// The form of printf: g++ for Windows would check it for the functions of an old C library.
#if defined(__MINGW32__) && !defined(__clang__)
#define PASSLIB_PRINTF __gnu_printf__
#else
#define PASSLIB_PRINTF __printf__
#endif

namespace mxnet {
namespace ext {
// An inline namespace separates these functions from those of MXNet's own lib_api in one process.
inline namespace passlib_api {

class Graph;
class Node;
class OptionValue;
enum MXDType : int;
struct JsonOptions;
struct JsonVal;
struct MXContext;
struct MXTensor;
struct PassDeclaration;
namespace detail {
class AttributeTexts;
class GraphAttributeTexts;
class GraphMap;
class NodeMarks;
class PatternSession;
}  // namespace detail

/// The result of every function that a library registers.
enum MXReturnValue { MX_FAIL = 0, MX_SUCCESS = 1 };
