// Reads JSON texts from standard input, each after its length in four bytes (least significant
// first), and answers each on one line: "+" and the dump, or "-", code, offset, line, column and
// message.
#include <cstdio>
#include <string>

#include "lib_api.h"

int main() {
  unsigned char head[4];
  while (fread(head, 1, 4, stdin) == 4) {
    const std::size_t size =
        head[0] | head[1] << 8 | head[2] << 16 | static_cast<std::size_t>(head[3]) << 24;
    std::string text(size, '\0');
    if (size > 0 && fread(&text[0], 1, size, stdin) != size) return 1;
    try {
      const mxnet::ext::JsonVal value = mxnet::ext::JsonVal::parse(text);
      const mxnet::ext::JsonVal copy = value;
      if (!(copy == value)) return 2;
      printf("+%s\n", copy.dump().c_str());
    } catch (const mxnet::ext::JsonError& error) {
      printf("-%d %zu %zu %zu %s\n", static_cast<int>(error.code), error.offset, error.line,
             error.column, error.what());
    }
    fflush(stdout);
  }
  return 0;
}
