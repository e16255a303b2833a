#include "moves/rounding.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace passlib::moves {
namespace {

/// Elements that are rounded at once. The sums depend on it.
constexpr int64_t kAtOnce = int64_t{1} << 20;

/// Elements of a line that are read together where lines are columns: a line of the cache.
constexpr int64_t kColumn = 16;

/// Bytes of a row that are written together: the same.
constexpr int64_t kRow = 64;

/// Added to a number of double precision and subtracted, it rounds it, halves to even, if it is
/// below 2^51.
constexpr double kWhole = 6755399441055744;

float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

template <typename Word>
Word loaded(const char* place) {
  Word word;
  std::memcpy(&word, place, sizeof word);
  return word;
}

/// Clears the lowest bits of a number's significand, halves rounded to even.
uint32_t withoutBits(uint32_t bits, int count) {
  const uint32_t half = (uint32_t{1} << (count - 1)) - 1;
  return (bits + half + (bits >> count & 1)) >> count << count;
}

struct Single {
  static constexpr std::size_t kSize = 4;
  static float load(const char* place) { return loaded<float>(place); }
  static float rounded(float value) { return value; }
  static float narrowed(double value) { return static_cast<float>(value); }
};

struct Brain {
  static constexpr std::size_t kSize = 2;
  static float load(const char* place) { return floatOf(uint32_t{loaded<uint16_t>(place)} << 16); }
  static float rounded(float value) { return floatOf(withoutBits(bitsOf(value), 16)); }
  /// By way of single precision, as casts of NumPy's bfloat16 do.
  static float narrowed(double value) { return rounded(static_cast<float>(value)); }
};

struct Half {
  static constexpr std::size_t kSize = 2;
  static constexpr float kLeastNormal = 0x1p-14F, kEnd = 0x1p16F;

  /// An infinity or NaN becomes an infinity.
  static float load(const char* place) {
    const uint32_t bits = loaded<uint16_t>(place);
    // The exponent is that of a number 2^112 times smaller; of subnormal ones too.
    const float size = floatOf((bits & 0x7fff) << 13) * 0x1p112F;
    const float value = size < kEnd ? size : std::numeric_limits<float>::infinity();
    return (bits & 0x8000) != 0 ? -value : value;
  }
  static float rounded(float value) {
    const float size = std::fabs(value);
    float made;
    if (size < kLeastNormal) {
      made = (size + 0.5F) - 0.5F;  // a multiple of 2^-24
    } else {
      made = floatOf(withoutBits(bitsOf(size), 13));
      if (!(made < kEnd)) made = std::numeric_limits<float>::infinity();
    }
    return std::copysign(made, value);
  }
  /// Rounds a number from 0 on, once.
  static float narrowed(double value) {
    if (value < static_cast<double>(kLeastNormal))
      return static_cast<float>((value + 0x1p28) - 0x1p28);
    int exponent = 0;
    std::frexp(value, &exponent);
    return static_cast<float>(
        std::ldexp(std::nearbyint(std::ldexp(value, 11 - exponent)), exponent - 11));
  }
};

/// Adds numbers as NumPy does: the sum of halves, down to parts of at most 128 numbers.
class PairwiseSum {
 public:
  /// `term(i)` is a number of `count`.
  template <typename Term>
  double operator()(std::size_t count, Term term) {
    std::size_t start = 0;
    std::size_t size = count;
    while (true) {
      for (; size > kLeaf; size = leftOf(size)) pending_.push_back({size, false, 0});
      double sum = leaf(start, size, term);
      start += size;
      for (; !pending_.empty() && pending_.back().has_left; pending_.pop_back())
        sum = pending_.back().left + sum;
      if (pending_.empty()) return sum;
      Part& whole = pending_.back();
      whole.left = sum;
      whole.has_left = true;
      size = whole.count - leftOf(whole.count);
    }
  }

 private:
  static constexpr std::size_t kLeaf = 128, kWide = 8;

  struct Part {
    std::size_t count;
    bool has_left;
    double left;  ///< the sum of the left half
  };

  static std::size_t leftOf(std::size_t count) { return count / 2 - count / 2 % kWide; }

  template <typename Term>
  static double leaf(std::size_t start, std::size_t count, Term term) {
    if (count < kWide) {
      double sum = 0;
      for (std::size_t i = 0; i < count; ++i) sum += term(start + i);
      return sum;
    }
    double sums[kWide];
    for (std::size_t j = 0; j < kWide; ++j) sums[j] = term(start + j);
    std::size_t i = kWide;
    for (; i + kWide <= count; i += kWide) {
      for (std::size_t j = 0; j < kWide; ++j) sums[j] += term(start + i + j);
    }
    double sum =
        ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    for (; i < count; ++i) sum += term(start + i);
    return sum;
  }

  std::vector<Part> pending_;  ///< those whose sums are not complete, the largest first
};

/// Rounds an array some lines at a time.
template <typename Element>
class Rounding {
 public:
  Rounding(const char* data, const Lines& lines, const IntegerForm& form)
      : data_(data),
        lines_(lines),
        block_(std::min(lines.block, lines.length)),
        lowest_(form.lowest()),
        highest_(form.highest()),
        symmetric_(form.symmetric) {}

  std::optional<RoundedWeight> run() {
    const int64_t padded = lines_.blocksOfLine() * block_;
    const int64_t step = std::min(std::max<int64_t>(kAtOnce / padded, 1), lines_.count());
    const auto most = static_cast<std::size_t>(step * padded);
    numbers_.reset(new float[most]);
    again_.reset(new float[most]);
    made_.lines = lines_;
    made_.integers.reset(new unsigned char[static_cast<std::size_t>(lines_.size())]);
    made_.scales.reserve(static_cast<std::size_t>(lines_.blocks()));
    if (!symmetric_) made_.zeros.reserve(static_cast<std::size_t>(lines_.blocks()));
    double squares = 0;
    double power = 0;
    largest_ = 0;
    for (int64_t first = 0; first < lines_.count(); first += step) {
      const int64_t count = std::min(step, lines_.count() - first);
      read(first, count, padded);
      for (int64_t line = 0; line < count; ++line) {
        if (!roundLine(first + line, line * padded)) return std::nullopt;
      }
      const auto size = static_cast<std::size_t>(count * padded);
      const float* const numbers = numbers_.get();
      const float* const again = again_.get();
      squares += sum_(size, [numbers, again](std::size_t i) {
        const double error = static_cast<double>(again[i]) - static_cast<double>(numbers[i]);
        return error * error;
      });
      power += sum_(size, [numbers](std::size_t i) {
        return static_cast<double>(numbers[i]) * static_cast<double>(numbers[i]);
      });
    }
    made_.largest_error = largest_;
    made_.relative_error = power == 0 ? 0 : std::sqrt(squares / power);
    return std::move(made_);
  }

 private:
  float element(int64_t number) const {
    return Element::load(data_ + static_cast<std::size_t>(number) * Element::kSize);
  }

  /// Reads lines into `numbers_`, filled up with 0.
  void read(int64_t first, int64_t count, int64_t padded) {
    for (int64_t line = 0; line < count && padded > lines_.length; ++line) {
      float* const end = numbers_.get() + line * padded + lines_.length;
      std::fill(end, end + (padded - lines_.length), 0.0F);
    }
    if (lines_.inner == 1) {
      for (int64_t line = 0; line < count; ++line) {
        const int64_t place = (first + line) * lines_.length;
        float* const target = numbers_.get() + line * padded;
        for (int64_t k = 0; k < lines_.length; ++k) target[k] = element(place + k);
      }
      return;
    }
    for (int64_t line = 0; line < count;) {
      const int64_t o = (first + line) / lines_.inner;
      const int64_t i = (first + line) % lines_.inner;
      const int64_t run = std::min(lines_.inner - i, count - line);
      for (int64_t start = 0; start < lines_.length; start += kColumn) {
        const int64_t end = std::min(start + kColumn, lines_.length);
        for (int64_t j = 0; j < run; ++j) {
          float* const target = numbers_.get() + (line + j) * padded;
          for (int64_t k = start; k < end; ++k)
            target[k] = element((o * lines_.length + k) * lines_.inner + i + j);
        }
      }
      line += run;
    }
  }

  /// Rounds the blocks of a line, which begins at a place of `numbers_`; false if a number is not
  /// finite.
  bool roundLine(int64_t line, int64_t place) {
    unsigned char* const integers = made_.integers.get() + line * lines_.length;
    for (int64_t start = 0; start < lines_.length; start += block_) {
      const int64_t used = std::min(block_, lines_.length - start);
      const float* const numbers = numbers_.get() + place + start;
      float* const again = again_.get() + place + start;
      if (!roundBlock(numbers, used, integers + start, again)) return false;
      std::fill(again + used, again + block_, 0.0F);
    }
    return true;
  }

  bool roundBlock(const float* numbers, int64_t count, unsigned char* integers, float* again) {
    float low = 0;
    float high = 0;
    bool finite = true;
    for (int64_t k = 0; k < count; ++k) {
      finite &= std::fabs(numbers[k]) <= std::numeric_limits<float>::max();
      low = std::min(low, numbers[k]);
      high = std::max(high, numbers[k]);
    }
    if (!finite) return false;
    const double bottom = low;
    const double top = high;
    const double wide = symmetric_ ? std::max(top, -bottom) : top - bottom;
    float scale = Element::narrowed(wide / (symmetric_ ? highest_ : highest_ - lowest_));
    if (!(scale > 0)) scale = 1;
    const double factor = scale;
    double middle = 0;
    if (!symmetric_) {
      middle = std::min(std::max(std::nearbyint(-bottom / factor), 0.0), highest_);
      made_.zeros.push_back(static_cast<unsigned char>(middle));
    }
    made_.scales.push_back(scale);
    double largest = largest_;
    for (int64_t k = 0; k < count; ++k) {
      const double number = numbers[k];
      const double nearest = (number / factor + kWhole) - kWhole + middle;
      const double whole = std::min(std::max(nearest, lowest_), highest_);
      integers[k] = static_cast<unsigned char>(static_cast<int>(whole));
      again[k] = Element::rounded(static_cast<float>(whole - middle) * scale);
      largest = std::max(largest, std::fabs(static_cast<double>(again[k]) - number));
    }
    largest_ = largest;
    return largest <= std::numeric_limits<double>::max();
  }

  const char* data_;
  const Lines lines_;
  const int64_t block_;  ///< not larger than a line
  const double lowest_;
  const double highest_;
  const bool symmetric_;
  double largest_ = 0;
  std::unique_ptr<float[]> numbers_;
  std::unique_ptr<float[]> again_;  ///< what the integers stand for
  PairwiseSum sum_;
  RoundedWeight made_{};
};

}  // namespace

std::optional<RoundedWeight> roundedWeight(const mxnet::ext::MXTensor& array, const Lines& lines,
                                           const IntegerForm& form) {
  const char* const data = static_cast<const char*>(array.data_ptr);
  if (array.dtype == mxnet::ext::kFloat32) return Rounding<Single>(data, lines, form).run();
  if (array.dtype == mxnet::ext::kFloat16) return Rounding<Half>(data, lines, form).run();
  return Rounding<Brain>(data, lines, form).run();
}

void copyInPlace(const unsigned char* by_line, const Lines& lines, unsigned char* target) {
  if (lines.inner == 1) {
    if (lines.size() != 0) std::memcpy(target, by_line, static_cast<std::size_t>(lines.size()));
    return;
  }
  for (int64_t o = 0; o < lines.outer; ++o) {
    const int64_t first = o * lines.length * lines.inner;
    for (int64_t start = 0; start < lines.inner; start += kRow) {
      const int64_t end = std::min(start + kRow, lines.inner);
      for (int64_t k = 0; k < lines.length; ++k) {
        for (int64_t i = start; i < end; ++i)
          target[first + k * lines.inner + i] = by_line[first + i * lines.length + k];
      }
    }
  }
}

}  // namespace passlib::moves
