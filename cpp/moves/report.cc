#include "moves/report.h"

#include <array>
#include <charconv>

namespace passlib::moves {

std::string shortNumber(double number, int digits) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number,
                                 std::chars_format::general, digits);
  return {text.data(), end.ptr};
}

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, ",");
  return digits;
}

std::string counted(std::size_t count, const std::string& noun) {
  return grouped(static_cast<int64_t>(count)) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace passlib::moves
