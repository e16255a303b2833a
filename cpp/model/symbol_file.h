// The files of MXNet's models: a graph, and for each saved epoch its weights.
#ifndef PASSLIB_MODEL_SYMBOL_FILE_H_
#define PASSLIB_MODEL_SYMBOL_FILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/attribute_texts.h"
#include "graph/source.h"
#include "library/file_mapping.h"
#include "model/array.h"

namespace passlib::model {

/// A model of MXNet as it was read. Nothing in it changes; threads may share one.
struct SymbolFile {
  std::shared_ptr<GraphSource> graph;
  GraphTexts attributes;
  Arrays arrays;
  int64_t epoch = 0;               ///< the number in the name of the weight file
  std::vector<std::string> order;  ///< the names in the weight file, with `arg:` and `aux:`
  std::shared_ptr<const FileMapping> weights;  ///< or null
};

/// Whether a path leads to a model of MXNet: its graph, a file of its weights, or how the names of
/// both begin.
bool isSymbolFile(const std::string& path);

/// Reads the graph, and the weights of the epoch in the path, or else of the last one. Throws
/// std::system_error, FormatError, GraphError, UnsupportedError.
std::shared_ptr<const SymbolFile> openSymbolFile(const std::string& path);

/// The beginning of the names of a model's files, and its graph.
struct SymbolNames {
  std::string prefix;
  std::string symbol;
};
/// `x` and `x-symbol.json` have the prefix `x`, and so has `x.json`.
SymbolNames symbolNames(const std::string& path);

/// The weight files of a model, by epoch.
std::map<int64_t, std::string> weightFiles(const std::string& prefix);

/// The stamps that saves of a model left, which note which of its files they were replacing.
std::vector<std::string> stampsOf(const std::string& symbol);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_SYMBOL_FILE_H_
