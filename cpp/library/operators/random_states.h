// Random number generators for operators.
#ifndef PASSLIB_LIBRARY_OPERATORS_RANDOM_STATES_H_
#define PASSLIB_LIBRARY_OPERATORS_RANDOM_STATES_H_

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace passlib {

/// Reseeds all generators as MXNet's random.seed does: generator i gets 127 * seed + i.
void seedRandomStates(uint32_t seed);

/// A set of generators, lent for one call. Consecutive calls from any thread continue the same set,
/// so a program draws the same numbers as in MXNet; concurrent calls get separate sets.
class RandomLease {
 public:
  /// The number of generators, which is part of the ABI.
  static constexpr std::size_t kCount = 1024;

  struct Set {
    std::size_t number = 0;  ///< in order of first use
    uint64_t generation = 0;
    std::vector<std::mt19937> states;
  };

  RandomLease();
  ~RandomLease();
  RandomLease(const RandomLease&) = delete;
  RandomLease& operator=(const RandomLease&) = delete;

  std::mt19937* states() { return set_->states.data(); }

 private:
  std::unique_ptr<Set> set_;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_OPERATORS_RANDOM_STATES_H_
