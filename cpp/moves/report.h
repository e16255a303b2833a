// Numbers in what algorithms print.
#ifndef PASSLIB_MOVES_REPORT_H_
#define PASSLIB_MOVES_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace passlib::moves {

/// The lines of one kind that a report has at most.
constexpr std::size_t kMostLines = 20;

/// A number with so many digits, as Python's format `g` spells it.
std::string shortNumber(double number, int digits);

/// A number from 0 on, with commas between its thousands.
std::string grouped(int64_t number);

/// A number with its noun, as in "1 weight" and "3 weights".
std::string counted(std::size_t count, const std::string& noun);

}  // namespace passlib::moves

#endif  // PASSLIB_MOVES_REPORT_H_
