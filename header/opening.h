/*
 * lib_api.h: everything that the author of a passlib library needs, in one file.
 *
 * A library includes this header, registers passes with REGISTER_PASS, defines initialize(), and is
 * compiled with one line:
 *
 *     g++ -shared -fPIC -fvisibility=hidden -std=c++11 mypass_lib.cc -o libmypass_lib.so -I include
 *
 * The result loads in passlib and, since it implements version 11 of the extension ABI, also in
 * Apache MXNet 1.9 and 2.0. The names are MXNet's: sources written for its lib_api.h compile
 * unchanged. C++11 to C++23, GCC and Clang, no dependency.
 *
 * Order: options, versions, DLPack, errors, tensors, JSON, the graph, resources, operators,
 * partitioners, passes, registration, entry points; then the bodies. The first part is the manual.
 * Passes in text are in lib_patterns.h, which includes this file. Both files are made of the parts
 * in header/ by `make header`.
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

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <map>
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
#if defined(PASSLIB_HOST) && !defined(PASSLIB_NO_ENTRY_POINTS)
#define PASSLIB_NO_ENTRY_POINTS
#endif
// A compiler takes half as long for the following headers as for all those that MXNet's header has,
// so that nothing which a library without patterns compiles may need them.
#ifdef PASSLIB_HOST
#include <algorithm>
#include <atomic>
#include <deque>
#include <locale>
#include <memory>
#include <mutex>
#include <set>
#endif
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

// ================================================================================================
// Options. Define before including.
//
//   PASSLIB_JSON_MAX_DEPTH    nesting limit of JSON texts (default 1,000,000; depth costs heap, not
//                             stack)
//   PASSLIB_NO_GLOBAL_DLPACK  keep the DLPack types out of the global namespace, for sources that
//                             include another dlpack.h after this header
//   PASSLIB_PATTERNS          include lib_patterns.h at the end of this header
//   PASSLIB_NO_ENTRY_POINTS   types only, no exported C functions: for all sources of a library but
//                             one
//   PASSLIB_HOST              the same for a host, with what it shares (mxnet::ext::host), and its
//                             readers made for speed: all its sources define it
// ================================================================================================

#ifndef PASSLIB_JSON_MAX_DEPTH
#define PASSLIB_JSON_MAX_DEPTH 1000000
#endif

/// Version of the extension ABI: the C functions declared below under "Entry points".
#define MX_LIBRARY_VERSION 11

/// Only the entry points are exported. All else is hidden, so that two libraries in one process
/// never share a registry, a table or a function.
#define PASSLIB_EXPORT __attribute__((visibility("default")))
#define PASSLIB_HIDDEN __attribute__((visibility("hidden")))
#define PRIVATE_SYMBOL PASSLIB_HIDDEN

#if !defined(__clang__)
// GCC warns of classes with members or bases of a hidden type, which here are all of the author's.
#pragma GCC diagnostic ignored "-Wattributes"
#endif
#pragma GCC visibility push(hidden)

// Libraries need no speed where they report errors, describe themselves, and read and write graphs
// in JSON: hosts that want speed hand them over in other ways. Such code is compiled without
// optimization (cold), where it runs often with few (small); what the flat handover runs is as fast
// with -O1 (plain). A host, which reads and writes its files with it, has all of it made for speed.
// None of it is inlined elsewhere.
#if defined(__OPTIMIZE__) && !defined(__clang__) && !defined(PASSLIB_HOST)
#define PASSLIB_COLD_CODE _Pragma("GCC push_options") _Pragma("GCC optimize(\"O0\")")
#define PASSLIB_SMALL_CODE _Pragma("GCC push_options") _Pragma("GCC optimize(\"Og\")")
#define PASSLIB_PLAIN_CODE _Pragma("GCC push_options") _Pragma("GCC optimize(\"O1\")")
#define PASSLIB_END_CODE _Pragma("GCC pop_options")
#else
#define PASSLIB_COLD_CODE
#define PASSLIB_SMALL_CODE
#define PASSLIB_PLAIN_CODE
#define PASSLIB_END_CODE
#endif
