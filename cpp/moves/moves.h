// Standard passes that move, merge and cancel operators.
#ifndef PASSLIB_MOVES_MOVES_H_
#define PASSLIB_MOVES_MOVES_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "moves/model.h"
#include "rules/folding.h"

namespace passlib::moves {

/// The options of all passes. Each pass reads its own.
struct Options {
  bool empty_errors = true;
  bool reorder_sums = false;
  bool conditions = false;
  bool reorder_weights = false;
  bool nested = true;
  bool keep_io = true;
  bool clamp = true;
  bool symmetric = true;
  int64_t max_growth = 0;
  int64_t largest = 0;
  int64_t bits = 8;
  int64_t block = 0;
  int64_t least = 0;
  std::string dtype;
  std::string target;
  std::vector<std::string> keep_ops;
  std::vector<std::string> keep_nodes;

  /// Sets a member of this name and type, if there is one.
  void set(std::string_view name, int64_t value);
  void set(std::string_view name, const std::string& value);
  void set(std::string_view name, const std::vector<std::string>& value);
};

/// Runs one of the passes below, by its name; false if there is none.
bool run(std::string_view name, Model* model, const Options& options);

/// Computes operators on constants: those of rules/folding.h, and those whose integers inference
/// knows. `max_growth`: of the weights, in bytes; the largest results that exceed it stay
/// operators.
void foldConstants(Model* model, int64_t max_growth);

/// Computes the only result of an operator on arrays, as rules/folding.h says. Returns false if it
/// cannot, or if `allocate` returns null.
bool compute(const Node& node, const std::vector<const MXTensor*>& inputs,
             const rules::Allocate& allocate);

/// Merges successive multiplications by constants, and successive additions of constants.
void mergeFactors(Model* model);

/// Merges nested Concats along the same axis.
void mergeConcats(Model* model);

/// Merges Casts with earlier lossless ones, also through operators that only move elements.
void propagateCasts(Model* model);

/// Merges Slices of Slices, and replaces Slices that cover a value by Split.
void mergeSlices(Model* model);

/// Replaces Slices with steps in height and width, which a Concat joins, by SpaceToDepth.
/// `reorder_weights`: those of a following Conv get another order, where else a Gather follows.
void fuseSpaceToDepth(Model* model, bool reorder_weights);

/// Merges successive operators that keep the order of the elements and change the shape.
void mergeReshapes(Model* model);

/// Makes shape tensors of parts of shapes and of constants, with as few operators as possible.
void rebuildShapes(Model* model);

/// Replaces If with a known condition by its branch, and Loop with one iteration by its body.
void resolveIf(Model* model);

/// Replaces computations on dimensions by their results, and computed shapes of Reshape by
/// constants. `conditions`: also those of If.
void foldShapes(Model* model, bool conditions);

/// Merges, cancels and moves Transposes. `empty_errors`: a Reshape that fails if an open dimension
/// is 0 stays. `reorder_sums`: Transposes also move into reductions, which then add in another
/// order.
void cancelTransposes(Model* model, bool empty_errors, bool reorder_sums);

/// Moves Transposes behind their users if this reduces their number; a part of cancelTransposes.
void sinkTransposes(Model* model, bool reorder_sums);

/// Computes float32 models in half precision, by the options `dtype`, `keep_io`, `keep_ops`,
/// `keep_nodes` and `clamp`.
void toHalf(Model* model, const Options& options);

/// Turns Constant nodes of the file into weights. `nested`: also constants and weights of nested
/// graphs, as liftConstants does.
void constantsToWeights(Model* model, bool nested);

/// Which constants of nested graphs are wanted.
using Wanted = std::function<bool(Graph*, Node*)>;
/// Turns constants and weights of nested graphs into weights, which the nested graphs capture.
void liftConstants(Model* model, const Wanted& wanted);

/// Turns weights of at most `largest` elements into Constant nodes.
void weightsToConstants(Model* model, int64_t largest);

/// Stores constant weights of MatMul, Gemm, Gather and Conv in 8 or 4 bits, and prints their
/// errors. Reads the options `bits`, `block`, `symmetric`, `target`, `keep_ops`, `keep_nodes` and
/// `least`. Throws UnsupportedError if the operator set lacks the DequantizeLinear that this needs.
void quantizeWeights(Model* model, const Options& options);

/// Names operators without a name, and renames those whose name another node has; in a graph of an
/// ONNX file those that its reader named.
void nameUniquely(Model* model);

/// Whether Transposes may go through an operator.
bool isPassable(const Node& node);

}  // namespace passlib::moves

#endif  // PASSLIB_MOVES_MOVES_H_
