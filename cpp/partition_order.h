// Where nodes stand once groups of them are one node each, and which groups would make a cycle.
#ifndef PASSLIB_PARTITION_ORDER_H_
#define PASSLIB_PARTITION_ORDER_H_

#include <cstdint>
#include <vector>

#include "partition_graph.h"

namespace passlib {

/// The graph in which every group merged so far is a single node: a unit. It never has a cycle.
///
/// Units have positions, each behind those of the units that it needs, so that a search for a way
/// from a group back into it only looks at units between the group's first and last one. A merge
/// moves only units in between (the way of Pearce and Kelly's dynamic topological sort).
class UnitOrder {
 public:
  explicit UnitOrder(const NumberedGraph& graph);

  /// Searches for ways that leave a group and come back into it: merged, it would be on a cycle.
  /// `group`: single nodes that are not merged yet, in ascending order. The result stays valid
  /// until the next call.
  void search(const std::vector<int>& group);
  /// The last node at which such a way comes back, -1 if there is none.
  int lastReentry() const { return last_reentry_; }
  /// The nodes at which such ways come back, and those of the group that need one of them.
  const std::vector<int>& reentered() const { return reentered_; }

  /// Makes the group one unit. The last search was for this group, and found nothing.
  void merge(const std::vector<int>& group);

  /// Stops keeping positions: merging is quick from here on, and searching slow.
  void forgetPositions() { ordered_ = false; }
  /// How many edges were looked at so far.
  int64_t work() const { return work_; }

 private:
  int unit(int node) const { return unit_[static_cast<std::size_t>(node)]; }
  int position(int unit) const { return position_[static_cast<std::size_t>(unit)]; }
  bool visit(int unit);
  template <typename Act>
  void forEachMember(int unit, Act act) const;
  std::vector<int> ancestors(const std::vector<int>& group, int first, int last);

  const NumberedGraph& graph_;
  bool ordered_ = true;
  int64_t work_ = 0;
  std::vector<int> unit_;                  ///< of each node: a node that stands for all in it
  std::vector<std::vector<int>> members_;  ///< of units that were merged
  std::vector<int> merged_;                ///< of each unit: where in members_, or -1
  std::vector<int> position_;              ///< of each unit
  std::vector<int> visit_;                 ///< of each unit: number of the search that last met it
  std::vector<int> group_mark_;            ///< of each node: number of the search that it was for
  int visit_number_ = 0;
  int last_reentry_ = -1;
  std::vector<int> reentered_;
  std::vector<int> behind_;  ///< units outside the group that the last search came to
};

}  // namespace passlib

#endif  // PASSLIB_PARTITION_ORDER_H_
