#include "ort/types.h"

namespace passlib {
std::string spelled(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t extent : shape) {
    text += (text.empty() ? "" : ", ") + (extent < 0 ? "?" : std::to_string(extent));
  }
  return "(" + text + ")";
}

}  // namespace passlib
