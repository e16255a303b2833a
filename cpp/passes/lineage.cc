#include "lineage.h"

#include <string>

namespace passes {

void noteOrigin(const Graph& graph, Node* node, const std::vector<Node*>& others) {
  constexpr std::size_t kMost = 256;
  // Hosts of passlib say the dialect, and keep the attribute out of files; MXNet does not.
  if (graph.attrs.count("dialect") == 0) return;
  JsonVal names(LIST);
  std::vector<const Node*> parts(1, node);
  parts.insert(parts.end(), others.begin(), others.end());
  std::string earlier;
  for (const Node* part : parts) {
    if (names.list.size() >= kMost) break;
    earlier = textAttr(part, MX_STR_ORIGIN, "");
    if (earlier.empty()) {
      names.list.emplace_back(part->name);
      continue;
    }
    const JsonVal listed = JsonVal::parse(earlier);
    names.list.insert(names.list.end(), listed.list.begin(), listed.list.end());
  }
  if (names.list.size() > kMost) names.list.resize(kMost);
  node->attrs[MX_STR_ORIGIN] = names.dump();
}

}  // namespace passes
