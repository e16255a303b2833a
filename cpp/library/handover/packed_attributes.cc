#include "library/handover/packed_attributes.h"

#include <string>
#include <string_view>

#include "errors.h"

namespace passlib {
namespace {

/// The most attributes that the header packs: a search goes through all of them.
constexpr uint32_t kMostPacked = 64;

[[noreturn]] void refusePacked(const std::string& problem) {
  throw GraphError("its packed attributes are not well-formed: " + problem);
}

}  // namespace

void checkPackedAttributes(const uint32_t* packed, std::size_t count) {
  if (count < 2) refusePacked("fewer than two words");
  const uint32_t number = packed[0];
  if (number == 0 || number > kMostPacked) refusePacked(std::to_string(number) + " attributes");
  const std::size_t head = 2 + 2 * static_cast<std::size_t>(number);
  const std::size_t size = packed[1];
  if (count < head || count - head != (size + 3) / 4) {
    refusePacked(std::to_string(count) + " words do not hold them");
  }
  const std::string_view texts(reinterpret_cast<const char*>(packed + head), 4 * (count - head));
  std::size_t used = 0;
  std::string_view before;
  for (uint32_t i = 0; i < number; ++i) {
    const uint32_t* sizes = packed + 2 + 2 * static_cast<std::size_t>(i);
    if (sizes[0] > size - used || sizes[1] > size - used - sizes[0]) {
      refusePacked("attribute number " + std::to_string(i) + " goes beyond the texts");
    }
    const std::string_view key = texts.substr(used, sizes[0]);
    if (i > 0 && !(before < key)) refusePacked("the keys are not sorted, or one occurs twice");
    before = key;
    used += static_cast<std::size_t>(sizes[0]) + sizes[1];
  }
  if (used != size) refusePacked("the texts are longer than keys and values");
  if (texts.find_first_not_of('\0', used) != std::string_view::npos) {
    refusePacked("the bytes behind the texts are not 0");
  }
}

}  // namespace passlib
