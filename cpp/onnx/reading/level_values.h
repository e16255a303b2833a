// The values of one graph of a file: who computes each, and in which order.
#ifndef PASSLIB_ONNX_READING_LEVEL_VALUES_H_
#define PASSLIB_ONNX_READING_LEVEL_VALUES_H_

#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/name_map.h"
#include "onnx/reading/level.h"
#include "onnx/wire/fields.h"

namespace passlib::onnx {

/// Name of the variable that stands for an omitted optional input.
constexpr const char* kAbsent = "__absent__";

/// Who computes a value.
struct Maker {
  enum Where : uint8_t { kMade, kVariable, kOmitted, kOutside };
  Node* variable = nullptr;
  uint32_t node = 0;
  uint32_t output = 0;
  Where where = kOutside;
};

/// Names of a graph.
class LevelValues {
 public:
  explicit LevelValues(const Level& level);

  /// Names `count` values; `maker_of` is called in turn. Throws GraphError or UnsupportedError if a
  /// name is taken or reserved.
  template <typename NameOf, typename MakerOf>
  void define(std::size_t count, NameOf name_of, MakerOf maker_of) {
    const auto checked = [&](std::size_t number) {
      const Maker maker = maker_of(number);
      if (name_of(number) == kAbsent) failReserved(name_of(number));
      return maker;
    };
    makers_.insertAll(count, name_of, checked, [&](std::size_t number, bool fresh) {
      if (!fresh) failTwice(name_of(number));
    });
  }

  /// Finds who computes a value. `user` returns the text for the message if that is nobody.
  template <typename User>
  Maker find(Bytes name, User user) const {
    if (const Maker* found = makers_.find(name)) return *found;
    Maker maker;
    if (name.empty()) {
      maker.where = Maker::kOmitted;
    } else {
      if (!isName(name) || !nested_) fail(name, user());
    }
    return maker;
  }

 private:
  [[noreturn]] static void failReserved(Bytes name);
  [[noreturn]] static void failTwice(Bytes name);
  [[noreturn]] void fail(Bytes name, const std::string& user) const;

  NameMap<Maker> makers_;
  bool nested_;
};

/// An edge between nodes of a level.
struct Need {
  uint32_t producer;
  uint32_t consumer;
};

/// Orders `count` nodes: each after those it needs, else as they are. Throws GraphError with the
/// title of a node of a cycle.
std::vector<uint32_t> orderNodes(const Level& level, const std::vector<Need>& needs);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_READING_LEVEL_VALUES_H_
