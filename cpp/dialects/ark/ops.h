// The ops of an ARK model file with their tensors, as they stand in the file.
#ifndef PASSLIB_DIALECTS_ARK_OPS_H_
#define PASSLIB_DIALECTS_ARK_OPS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dialects/index.h"
#include "dialects/plain_json.h"

namespace passlib::ark {

using Sizes = std::vector<int64_t>;

struct Tensor {
  int64_t id = 0;
  std::string_view dtype;
  Sizes shape;
  Sizes strides;
  Sizes offsets;
  int64_t buffer = 0;
  int64_t rank = 0;
  bool is_sent = false;      ///< has SendTags
  bool is_received = false;  ///< has RecvTags
  std::string text;          ///< JSON without spaces

  bool isOf(int64_t own_rank) const { return rank == -1 || rank == own_rank; }
};

/// Tensors by number.
using Tensors = std::vector<int32_t>;

struct Op {
  std::size_t unit = 0;
  std::string key;  ///< its place in the file: of its unit, and among several ops of that
  std::string_view type;
  std::string_view name;
  bool states_virtual = false;
  std::vector<std::pair<std::string, std::string>> arguments;
  Tensors reads;
  Tensors writes;
  Tensors results;

  /// Whether it declares or views memory and computes nothing.
  bool isVirtual() const { return states_virtual && writes.empty(); }
  /// Whether it declares a buffer.
  bool declares() const { return isVirtual() && reads.empty() && results.size() == 1; }
};

/// A node of the file.
struct Unit {
  int64_t id = 0;
  std::vector<int64_t> producers;
};

class Ops {
 public:
  Ops(std::string_view text, std::size_t max_depth) : json_(text, max_depth) {}

  /// Reads a model file all of whose tensors are described alike wherever they occur.
  void read();

  int64_t rank = 0;
  int64_t world_size = 0;
  std::vector<Unit> units;
  std::vector<Op> ops;
  std::vector<Tensor> tensors;

 private:
  void readUnit();
  void readOp(std::size_t position, bool single);
  void readArguments(Op* op);
  void readTensors(Tensors* list);
  int32_t readTensor();
  void readBuffer(Tensor* tensor);
  bool readTags();

  // They also append to the text of the tensor.
  void appendKey(std::string_view key);
  int64_t readNumber();
  Sizes readSizes();

  PlainJson json_;
  IdIndex places_;  // of tensors
  std::string text_;
};

}  // namespace passlib::ark

#endif  // PASSLIB_DIALECTS_ARK_OPS_H_
