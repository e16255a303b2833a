#include "moves/kernels.h"

#include <algorithm>

namespace passlib::moves {

const std::map<std::string_view, Kernels>& kernels() {
  static const std::set<int> plain{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  static const std::set<int> bfloat16{16};
  static const std::set<int> float8{17, 18, 19, 20};
  static const std::set<int> real{1, 10, 11};
  static const std::set<int> bytes{2, 3};
  static const Kernels any{{1, plain}, {13, bfloat16}};
  static const std::map<std::string_view, Kernels> table{
      {"Concat", any},
      {"DepthToSpace", {{1, real}, {11, bytes}}},
      {"Expand", {{8, plain}}},
      {"Flatten", {{1, real}, {9, plain}, {13, bfloat16}}},
      {"Gather", any},
      {"Identity", {{1, plain}, {13, bfloat16}, {19, float8}}},
      {"Reshape", {{1, plain}, {13, bfloat16}, {21, float8}}},
      {"Slice", any},
      {"SpaceToDepth", {{1, {1, 2, 3, 10, 11}}}},
      {"Split", any},
      {"Squeeze", any},
      {"Tile", {{6, plain}}},
      {"Transpose", {{1, plain}, {13, bfloat16}, {21, {17, 18, 19, 20, 21, 22}}, {25, {25, 26}}}},
      {"Unsqueeze", any},
  };
  return table;
}

bool hasKernel(std::string_view op, int type, int64_t opset) {
  const auto found = kernels().find(op);
  return found != kernels().end() &&
         std::any_of(found->second.begin(), found->second.end(), [&](const auto& each) {
           return each.first <= opset && each.second.count(type) != 0;
         });
}

}  // namespace passlib::moves
