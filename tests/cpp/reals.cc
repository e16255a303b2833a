// Reads reals as text, one a line, and answers each with two lines: what JSON's parser and printer
// make of it, and the bits of an attribute of this text. The locale is the environment's.
#include <clocale>
#include <cstdio>
#include <iostream>
#include <string>

#include "lib_api.h"

int main() {
  if (setlocale(LC_ALL, "") == nullptr) return 3;
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      const double value = mxnet::ext::JsonVal::parse(line).toDouble();
      printf("%s\n",
             std::isfinite(value) ? mxnet::ext::JsonVal::real(value).dump().c_str() : "inf");
    } catch (const std::exception& error) {
      printf("refused\n");
    }
    mxnet::ext::Node node;
    node.name = "node";
    node.attrs["value"] = line;
    try {
      const double value = mxnet::ext::realAttr(&node, "value");
      unsigned long long bits = 0;  // a number with a fraction would follow the locale
      memcpy(&bits, &value, sizeof(value));
      printf("%016llx\n", bits);
    } catch (const std::exception& error) {
      printf("refused\n");
    }
  }
  return 0;
}
