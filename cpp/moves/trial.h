// Whether a model fails if a value has a certain number of axes.
#ifndef PASSLIB_MOVES_TRIAL_H_
#define PASSLIB_MOVES_TRIAL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "moves/model.h"

namespace passlib::moves {

/// The number of the nested graph that an attribute of an If names; nothing if it names none.
std::optional<std::size_t> branchOf(const Node& node, std::string_view key);

/// Whether a node that always runs fails if a value of the main graph has this number of axes.
/// `order`: the nodes of the main graph, each after its inputs.
bool failsWithRank(Model* model, const NodeEntry& value, int64_t rank,
                   const std::vector<Node*>& order);

}  // namespace passlib::moves

#endif  // PASSLIB_MOVES_TRIAL_H_
