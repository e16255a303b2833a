// Which operators a graph has, noted by walks that read its nodes anyway.
#ifndef PASSLIB_GRAPH_NOTES_OPERATOR_KINDS_H_
#define PASSLIB_GRAPH_NOTES_OPERATOR_KINDS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/text_table.h"

namespace passlib {

/// The operators of a graph's nodes with their numbers of outputs, and how many nodes each of these
/// kinds has. In a large graph, a walk that asks for operators waits for memory; these are some
/// hundred bytes. Unknown until they are noted, for graphs that have nested ones, and for those
/// with more kinds than graphs of models have.
class OperatorKinds {
 public:
  struct Kind {
    std::string op;
    int outputs;  ///< num_outputs of the nodes
    std::size_t nodes;
  };
  static constexpr std::size_t kMost = 128;

  bool isKnown() const { return known_; }
  const std::vector<Kind>& kinds() const { return kinds_; }

  void begin() {
    known_ = true;
    kinds_.clear();
    places_.fill(0);
  }
  void forget() {
    known_ = false;
    kinds_.clear();
  }
  void add(const Node& node) {
    if (!known_) return;
    uint8_t& place = placeOf(node);
    if (place >= kinds_.size() || !isOf(kinds_[place], node)) {
      std::size_t kind = 0;
      while (kind < kinds_.size() && !isOf(kinds_[kind], node)) ++kind;
      if (kind == kMost) return forget();
      if (kind == kinds_.size()) kinds_.push_back({node.op, node.num_outputs, 0});
      place = static_cast<uint8_t>(kind);
    }
    ++kinds_[place].nodes;
  }

 private:
  static bool isOf(const Kind& kind, const Node& node) {
    return kind.outputs == node.num_outputs && kind.op == node.op;
  }
  /// Which kind a node had last whose operator and number of outputs look alike.
  uint8_t& placeOf(const Node& node) {
    const auto outputs = static_cast<unsigned>(node.num_outputs);
    return places_[(quickNumber(node.op) + outputs * 67) % places_.size()];
  }

  bool known_ = false;
  std::vector<Kind> kinds_;
  std::array<uint8_t, 256> places_{};
};

}  // namespace passlib

#endif  // PASSLIB_GRAPH_NOTES_OPERATOR_KINDS_H_
