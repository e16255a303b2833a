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
 * Contents, in this order:
 *
 *     graph and nodes         Graph, Node, NodeEntry; helpers that read and set attributes
 *     tensors and parameters  MXTensor; weights that a pass reads and adds
 *     passes                  REGISTER_PASS, options, initialize
 *     operators               REGISTER_OP
 *     partitioners            REGISTER_PARTITIONER
 *     JSON                    JsonVal, JsonReader
 *     errors                  MX_ERROR_MSG and the exceptions
 *     bodies                  everything below is the implementation
 *
 * Passes in text are in lib_patterns.h, which includes this file. `make header` makes both files
 * from the parts in header/.
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
#include <cstddef>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <sstream>
#include <stdexcept>
#include <streambuf>
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
//   PASSLIB_JSON_MAX_DEPTH    nesting limit of JSON texts (default: 1,000,000); depth costs heap,
//                             but no stack
//   PASSLIB_NO_GLOBAL_DLPACK  keep the DLPack types out of the global namespace, for sources that
//                             include another dlpack.h after this header
//   PASSLIB_PATTERNS          include lib_patterns.h at the end of this header
//   PASSLIB_NO_ENTRY_POINTS   declare types and helpers only, without exported C functions

#ifndef PASSLIB_JSON_MAX_DEPTH
#define PASSLIB_JSON_MAX_DEPTH 1000000
#endif

/// Version of the extension ABI, which the C functions at the end of this file implement.
#define MX_LIBRARY_VERSION 11

// Only the C functions are exported. Everything else is hidden, so that two libraries in one
// process never share a registry.
#define PASSLIB_EXPORT __attribute__((visibility("default")))
#define PRIVATE_SYMBOL __attribute__((visibility("hidden")))
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wattributes"  // of author's classes with hidden members
#endif
#pragma GCC visibility push(hidden)

namespace mxnet {
namespace ext {
// An inline namespace separates these functions from those of MXNet's own lib_api in one process.
inline namespace passlib_api {

class Graph;
class Node;
class PassResource;
struct JsonOptions;
struct JsonVal;
struct MXContext;
struct MXTensor;
struct FlatModel;
namespace detail {
class AddressTable;  // details of this header, below its manual
class AttributeTexts;
class GraphAttributeTexts;
class GraphMap;
class JsonTree;
class NodeMemory;
class ParamTable;
class PatternSession;
/// The types of a node in the running call, which the host infers when they are first read.
struct TypesPlace {
  uint32_t node = 0;  // position as the host showed it, from 1; 0 without types
  uint16_t call = 0;
};
}  // namespace detail

/// The result of every function that a library registers.
enum MXReturnValue {
  MX_FAIL = 0,
  MX_SUCCESS = 1,
};

/// Element types, by MXNet's codes.
enum MXDType {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kUint8 = 3,
  kInt32 = 4,
  kInt8 = 5,
  kInt64 = 6,
  kBool = 7,
  kInt16 = 8,
  kUint16 = 9,
  kUint32 = 10,
  kUint64 = 11,
  kBfloat16 = 12,
  kUNSET = 100,  ///< unknown
};
