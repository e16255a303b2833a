// Local functions of models on the wire, their calls, and the operator sets that they import.
#ifndef PASSLIB_ONNX_PARTS_FUNCTIONS_H_
#define PASSLIB_ONNX_PARTS_FUNCTIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "onnx/parts/bodies.h"

namespace passlib::onnx {

/// The function that a call names.
struct FunctionKey {
  std::string domain;  ///< "" for ONNX's own
  std::string name;
  std::string overload;

  /// As domain.name, with the overload, for messages.
  std::string title() const;

  bool operator<(const FunctionKey& other) const { return parts() < other.parts(); }
  bool operator==(const FunctionKey& other) const { return parts() == other.parts(); }

 private:
  std::tuple<const std::string&, const std::string&, const std::string&> parts() const {
    return {domain, name, overload};
  }
};

FunctionKey keyOfFunction(Bytes function);
FunctionKey keyOfCall(Bytes node);

/// The local functions of a model, in the order of the file. Of equal ones the last counts.
class Functions {
 public:
  explicit Functions(Bytes model);

  std::size_t size() const { return messages_.size(); }
  const std::vector<std::string>& messages() const { return messages_; }
  Bytes at(std::size_t number) const { return messages_[number]; }
  void set(std::size_t number, std::string message) { messages_[number] = std::move(message); }
  /// The number of a function; nothing if there is none.
  std::optional<std::size_t> find(const FunctionKey& key) const;

 private:
  std::map<FunctionKey, std::size_t> places_;
  std::vector<std::string> messages_;
};

inline Body bodyOfFunction(Bytes function) { return {function, {}, numbers::kFunctionNode}; }

/// Calls `visit` for each node of a body, and of the graphs nested in it, with the way to it.
void forEachNodeWithin(const Body& body, const std::function<void(const Path&)>& visit);

/// The values that a node uses, in its nested graphs too.
std::vector<Bytes> usedBy(Bytes node);

/// Versions of operator sets by domain.
using OperatorSets = std::map<std::string, int64_t>;

/// Reads OperatorSetIdProtos; of two of a domain the first counts.
OperatorSets setsOf(const std::vector<Bytes>& imports);
/// Makes an OperatorSetIdProto.
std::string importOf(const std::string& domain, int64_t version);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_PARTS_FUNCTIONS_H_
