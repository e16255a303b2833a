// The messages of the library under test about its last failure.
#ifndef PASSLIB_TESTS_MESSAGES_H_
#define PASSLIB_TESTS_MESSAGES_H_

#include <string>

#include "lib_api.h"

inline std::string lastMessage() {
  const char* text = nullptr;
  _msgGet(_msgSize() - 1, &text);
  return text == nullptr ? "" : text;
}

inline bool contains(const std::string& text, const char* word) {
  return text.find(word) != std::string::npos;
}

#endif  // PASSLIB_TESTS_MESSAGES_H_
