// The order of nodes while groups are merged, and the groups that would be on a cycle.
#ifndef PASSLIB_PARTITION_ORDER_H_
#define PASSLIB_PARTITION_ORDER_H_

#include <cstdint>
#include <vector>

#include "partition/graph.h"

namespace passlib {

/// The graph in which every group merged so far is a single node: a unit. It never has a cycle.
///
/// The position of a unit is after those of the units that it depends on, so a search for a path
/// from a group back into it visits only units between the group's first and last one. A merge
/// moves only units in between (as in Pearce and Kelly's dynamic topological sort).
class UnitOrder {
 public:
  explicit UnitOrder(const NumberedGraph& graph);

  /// Searches for paths that leave a group and re-enter it: merged, it would be on a cycle.
  /// `group`: nodes that are not merged yet, in ascending order. The result is valid until the next
  /// call.
  void search(const std::vector<int>& group);
  /// The last node of re-entry, -1 if there is none.
  int lastReentry() const { return last_reentry_; }
  /// The nodes of re-entry, and their dependents within the group.
  const std::vector<int>& reentered() const { return reentered_; }

  /// Makes the group one unit. The last search must have been for this group, and found nothing.
  void merge(const std::vector<int>& group);

  /// Stops maintaining positions: merges become fast, searches slow.
  void forgetPositions() { ordered_ = false; }
  /// The number of edges visited so far.
  int64_t work() const { return work_; }

 private:
  int unit(int node) const { return unit_[at(node)]; }
  int position(int unit) const { return position_[at(unit)]; }
  bool visit(int unit);
  template <typename Act>
  void forEachMember(int unit, Act act) const;
  std::vector<int> ancestors(const std::vector<int>& group, int first, int last);

  const NumberedGraph& graph_;
  bool ordered_ = true;
  int64_t work_ = 0;
  std::vector<int> unit_;                  ///< of each node: the first node of its unit
  std::vector<std::vector<int>> members_;  ///< of merged units
  std::vector<int> merged_;                ///< of each unit: its index in members_, or -1
  std::vector<int> position_;              ///< of each unit
  std::vector<int> visit_;                 ///< of each unit: number of the last search to visit it
  std::vector<int> group_mark_;            ///< of each node: number of the last search for it
  int visit_number_ = 0;
  int last_reentry_ = -1;
  std::vector<int> reentered_;
  std::vector<int> behind_;  ///< units outside the group that the last search visited
};

}  // namespace passlib

#endif  // PASSLIB_PARTITION_ORDER_H_
