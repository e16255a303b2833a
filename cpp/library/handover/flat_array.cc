#include "library/handover/flat_array.h"

#include <sys/sysinfo.h>

namespace passlib {

FlatBudget::FlatBudget() : left_(std::numeric_limits<uint32_t>::max()) {
  struct sysinfo machine;
  if (sysinfo(&machine) != 0) return;
  left_ = (static_cast<uint64_t>(machine.totalram) + machine.totalswap) * machine.mem_unit;
}

void FlatBudget::refuseText(const mxnet::ext::FlatText& text, const char* what) {
  const std::string start = std::string(what) + " has " + std::to_string(text.size) + " bytes, ";
  if (text.data == nullptr) throw GraphError(start + "but is null");
  throw GraphError(start + "with the texts before it more than this machine has memory");
}

}  // namespace passlib
