// The declarations of a schema about operators, looked up once for many nodes.
#ifndef PASSLIB_BINDINGS_OPERATOR_TABLE_H_
#define PASSLIB_BINDINGS_OPERATOR_TABLE_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/small_hash.h"
#include "graph/text_table.h"

namespace passlib {

struct OperatorFacts {
  int outputs = 0;         ///< 0: not the same for all nodes
  bool varying = false;    ///< the number of outputs depends on attributes
  bool carrying = false;   ///< outputs are those of the node's subgraph
  std::string registered;  ///< of an alias, the registered name; else empty
  std::string counting;    ///< the attribute that states the number of outputs; else empty

  /// The number of outputs that the subgraph of a node determines; 0 if there is none.
  int carried(const Node& node) const {
    if (!carrying || node.subgraphs.empty()) return 0;
    return std::max(static_cast<int>(node.subgraphs[0]->outputs.size()), 1);
  }
};

/// Numbers of outputs by operator and attributes, as the schema counted them. A later kind of node
/// may take the place of another.
class CountedOutputs {
 public:
  /// Returns 0 for a kind that was not counted, or whose attributes have a table.
  int find(const Node& node) const {
    std::size_t words = 0;
    const uint32_t* const packed = mxnet::ext::host::AttributeTexts(node.attrs).packed(&words);
    if (packed == nullptr) return 0;
    const Kind& kind = kinds_[place(packed, words)];
    const bool same = kind.attributes.size() == words && kind.op == node.op &&
                      std::equal(kind.attributes.begin(), kind.attributes.end(), packed);
    return same ? kind.outputs : 0;
  }
  void add(const Node& node, int outputs) {
    std::size_t words = 0;
    const uint32_t* const packed = mxnet::ext::host::AttributeTexts(node.attrs).packed(&words);
    if (packed == nullptr) return;
    kinds_[place(packed, words)] = Kind{node.op, {packed, packed + words}, outputs};
  }

 private:
  struct Kind {
    std::string op;
    std::vector<uint32_t> attributes;
    int outputs = 0;
  };
  std::size_t place(const uint32_t* packed, std::size_t words) const {
    const auto* bytes = reinterpret_cast<const char*>(packed);
    return smallHash(bytes, words * sizeof(uint32_t)) % kinds_.size();
  }
  std::array<Kind, 64> kinds_;
};

class OperatorTable {
 public:
  using Names = TextSet;

  OperatorTable(const TextMap<int>& fixed, const Names& varying, const Names& carrying,
                const TextMap<std::string>& registered, const TextMap<std::string>& counting) {
    for (const auto& [op, outputs] : fixed) facts_[op].outputs = outputs;
    for (const std::string& op : varying) facts_[op].varying = true;
    for (const std::string& op : carrying) facts_[op].carrying = true;
    for (const auto& [alias, name] : registered) {
      facts_[alias].registered = name;
    }
    for (const auto& [op, attribute] : counting) facts_[op].counting = attribute;
  }

  /// Which table this is: no other one has the number.
  uint64_t number() const { return number_; }

  CountedOutputs counted;  ///< of operators whose outputs depend on attributes

 private:
  friend class OperatorLookup;
  static uint64_t nextNumber() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }

  const uint64_t number_ = nextNumber();
  TextMap<OperatorFacts> facts_;
};

/// Entries of a table that were found last, for texts of which a graph has few: one that was found
/// is known again without a hash of it.
template <typename Entry>
class RecentTexts {
 public:
  /// Where the entry of a text is kept; that of another text, or null, if it is not known.
  Entry*& place(const std::string& text) { return known_[quickNumber(text) % known_.size()]; }

 private:
  std::array<Entry*, 256> known_{};
};

/// Finds operators in a table for a walk over a graph.
class OperatorLookup {
 public:
  explicit OperatorLookup(const OperatorTable& table) : table_(table) {}

  /// Returns what the table declares; for an operator that it does not have, facts of none.
  const OperatorFacts& find(const std::string& op) {
    static const OperatorFacts none;
    if (op.empty()) return none;
    const Entry*& known = known_.place(op);
    if (known == nullptr || known->first != op) {
      const auto found = table_.facts_.find(op);
      if (found == table_.facts_.end()) return none;
      known = &*found;
    }
    return known->second;
  }

 private:
  using Entry = TextMap<OperatorFacts>::value_type;
  const OperatorTable& table_;
  RecentTexts<const Entry> known_;
};

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_OPERATOR_TABLE_H_
