// The smallest thing that runs named test cases: TEST(name) { CHECK(condition); }
#ifndef PASSLIB_TESTS_CHECK_H_
#define PASSLIB_TESTS_CHECK_H_

#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>

namespace check {

inline std::map<std::string, std::function<void()>>& cases() {
  static std::map<std::string, std::function<void()>> all;
  return all;
}

struct Registration {
  Registration(const char* name, std::function<void()> body) { cases()[name] = std::move(body); }
};

[[noreturn]] inline void fail(const char* file, int line, const std::string& what) {
  std::ostringstream text;
  text << file << ":" << line << ": " << what;
  throw std::logic_error(text.str());
}

template <typename A, typename B>
void equal(const A& a, const B& b, const char* text, const char* file, int line) {
  if (a == b) return;
  std::ostringstream out;
  out << text << ": " << a << " is not " << b;
  fail(file, line, out.str());
}

}  // namespace check

#define TEST(name)                                                 \
  static void name();                                              \
  static const check::Registration registered_##name(#name, name); \
  static void name()
#define CHECK(condition)                                           \
  do {                                                             \
    if (!(condition)) check::fail(__FILE__, __LINE__, #condition); \
  } while (false)
#define CHECK_EQUAL(a, b) check::equal((a), (b), #a " == " #b, __FILE__, __LINE__)
/// The statement throws `Type`, whose text contains `word`.
#define CHECK_THROWS(statement, Type, word)                                           \
  do {                                                                                \
    bool thrown = false;                                                              \
    try {                                                                             \
      statement;                                                                      \
    } catch (const Type& error) {                                                     \
      thrown = true;                                                                  \
      if (std::string(error.what()).find(word) == std::string::npos) {                \
        check::fail(__FILE__, __LINE__, std::string("the text is ") + error.what());  \
      }                                                                               \
    }                                                                                 \
    if (!thrown) check::fail(__FILE__, __LINE__, #statement " did not throw " #Type); \
  } while (false)

#endif  // PASSLIB_TESTS_CHECK_H_
