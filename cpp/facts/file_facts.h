// Facts about the graph of a file, with other weights and given types.
#ifndef PASSLIB_FACTS_FILE_FACTS_H_
#define PASSLIB_FACTS_FILE_FACTS_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "facts/facts.h"
#include "facts/onnx_source.h"

namespace passlib::facts {

/// Types of variables by name as a caller states them: ONNX's element type, and sizes of which -1
/// is that which is known without them, and a smaller number is unknown.
using GivenTypes =
    std::map<std::string, std::tuple<std::optional<int>, std::optional<std::vector<int64_t>>>>;

/// The facts of a graph that came from a file.
class FileFacts {
 public:
  /// The facts of variables of the graph that are known already: those with arrays.
  using Known = std::unordered_map<const Node*, Fact>;

  FileFacts(std::shared_ptr<const onnx::Originals> file, std::shared_ptr<const Graph> graph,
            Known known)
      : graph_(std::move(graph)),
        source_(std::make_unique<OnnxSource>(std::move(file))),
        known_(std::move(known)) {}
  FileFacts(const FileFacts&) = delete;
  FileFacts& operator=(const FileFacts&) = delete;

  /// Passes over what the file states of these values.
  void doubt(std::set<std::pair<const Node*, std::size_t>> values) {
    doubtful_ = std::move(values);
  }

  /// `of_others`: see Settings.
  void infer(const Opsets& opsets, const GivenTypes& given, bool with_stated, bool large_sizes,
             bool believe_stated, decltype(Settings::of_others) of_others = nullptr);

  const Graph& graph() const { return *graph_; }
  const Facts& facts() const { return *facts_; }
  const OnnxSource& source() const { return *source_; }

  /// Whether inference knows the outputs of the graph, which have these names in the file, and
  /// finds what the file states of them: a tensor with a shape.
  bool confirms(const std::vector<std::string>& names) const;

  /// Whether a stated type contradicts that of a tensor.
  static bool disagree(const Fact& stated, const Fact& fact);

  /// The texts of __ext_shape__ and __ext_dtype__ of each node; fewer than nodes if a value is not
  /// known in full, or the file states another type. `codes`: MXNet's numbers of element types by
  /// ONNX's.
  std::vector<std::pair<std::string, std::string>> texts(const std::map<int, int>& codes) const;

 private:
  /// Notes the shape that an input states in place of that of the file.
  void noteStated(const Node& input);
  bool appendTexts(const std::map<int, int>& codes,
                   std::vector<std::pair<std::string, std::string>>* made) const;
  /// Whether the file states another type of a value.
  bool contradicts(const Node& node, std::size_t output, const Fact& fact) const;

  std::shared_ptr<const Graph> graph_;
  std::unique_ptr<OnnxSource> source_;
  Known known_;
  std::set<std::pair<const Node*, std::size_t>> doubtful_;
  std::unique_ptr<Facts> facts_;
};

/// Returns the TypeProto of a value of a known element type. Of the open sizes, those that `named`
/// accepts have a name.
std::string typeMessage(const Fact& fact, const std::function<bool(const Dim&)>& named);

}  // namespace passlib::facts

#endif  // PASSLIB_FACTS_FILE_FACTS_H_
