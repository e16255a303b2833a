// Filters: programs that read texts from standard input, each after its length in four bytes (least
// significant first), and answer each on one line.
#ifndef PASSLIB_TESTS_CPP_FILTER_H_
#define PASSLIB_TESTS_CPP_FILTER_H_

#include <cstdio>
#include <memory>
#include <string>

#include "lib_api.h"
#ifdef HOST_READER
#include "graph/graph_reader.h"
#endif

/// Reads a graph with the reader of libraries, or with that of the host.
inline mxnet::ext::Graph* readGraph(const std::string& text,
                                    const mxnet::ext::JsonOptions& reading) {
#ifdef HOST_READER
  std::unique_ptr<mxnet::ext::Graph> graph(new mxnet::ext::Graph());
  passlib::GraphReader(text.data(), text.size(), reading).read(graph.get());
  return graph.release();
#else
  return mxnet::ext::Graph::fromString(text.data(), text.size(), reading);
#endif
}

/// "-", code, offset, line, column and message.
inline std::string describe(const mxnet::ext::JsonError& error) {
  std::string said = "-" + std::to_string(static_cast<int>(error.code));
  for (const std::size_t place : {error.offset, error.line, error.column}) {
    said += " " + std::to_string(place);
  }
  return said + " " + error.what();
}

/// Answers all texts. Returns the status of the program.
inline int filter(std::string (*answer)(const std::string& text)) {
  unsigned char head[4];
  while (fread(head, 1, 4, stdin) == 4) {
    const std::size_t size =
        head[0] | head[1] << 8 | head[2] << 16 | static_cast<std::size_t>(head[3]) << 24;
    std::string text(size, '\0');
    if (size > 0 && fread(&text[0], 1, size, stdin) != size) return 1;
    printf("%s\n", answer(text).c_str());
    fflush(stdout);
  }
  return 0;
}

#endif  // PASSLIB_TESTS_CPP_FILTER_H_
