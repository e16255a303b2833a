/*
 * lib_patterns.h: passes in text, with Pattern, Match and PATTERN_PASS (docs/patterns.md).
 *
 *     #include "lib_patterns.h"
 *
 *     using namespace mxnet::ext;
 *
 *     PATTERN_PASS(fuseMatMulAdd, "MatMul and Add become Gemm", "onnx") {
 *       Pattern p("y = Add(MatMul(x, w:param), b:param)");
 *       p.replace("y = Gemm(x, w, b)");
 *     }
 *
 *     MXReturnValue initialize(int) { return MX_SUCCESS; }
 *
 * It includes lib_api.h, which needs nothing else; passes without patterns compile faster with that
 * alone. The file is made of the parts in header/ by `make header`.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MXNET_LIB_PATTERNS_H_
#define MXNET_LIB_PATTERNS_H_

#include "lib_api.h"

#ifdef MX_LIBRARY_VERSION  // else lib_api.h said what the compiler lacks

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace mxnet {
namespace ext {
inline namespace passlib_api {
