#include "library/handover/flat_array.h"

#include <unistd.h>

namespace passlib {

FlatBudget::FlatBudget() : left_(std::numeric_limits<uint32_t>::max()) {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long size = sysconf(_SC_PAGESIZE);
  if (pages > 0 && size > 0) left_ = static_cast<uint64_t>(pages) * static_cast<uint64_t>(size);
}

void FlatBudget::refuseText(const mxnet::ext::FlatText& text, const char* what) {
  const std::string start = std::string(what) + " has " + std::to_string(text.size) + " bytes, ";
  if (text.data == nullptr) throw GraphError(start + "but is null");
  throw GraphError(start + "with the texts before it more than this machine has memory");
}

}  // namespace passlib
