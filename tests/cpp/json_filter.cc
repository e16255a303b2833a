// A filter of JSON texts: "+" and the dump, or "-", code, offset, line, column and message.
#include <stdexcept>
#include <string>

#include "filter.h"
#include "lib_api.h"

namespace {

std::string answer(const std::string& text) {
  try {
    const mxnet::ext::JsonVal value = mxnet::ext::JsonVal::parse(text);
    const mxnet::ext::JsonVal copy = value;
    if (!(copy == value)) throw std::runtime_error("a copy is not equal");
    return "+" + copy.dump();
  } catch (const mxnet::ext::JsonError& error) {
    return describe(error);
  }
}

}  // namespace

int main() { return filter(&answer); }
