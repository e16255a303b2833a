// Graphs with arrays, while the core looks for patterns and rules in them.
#ifndef PASSLIB_BINDINGS_EDITING_MATCHED_H_
#define PASSLIB_BINDINGS_EDITING_MATCHED_H_

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/common.h"
#include "bindings/editing/handles.h"
#include "graph/text_table.h"

namespace passlib {

/// The arrays of parameters while patterns are searched, which the nodes point to.
class MatchedArrays {
 public:
  /// `params`: name, array, dtype code of variables of the graph.
  MatchedArrays(Graph* graph, const py::list& params) : graph_(graph) {
    TextMap<mxnet::ext::MXTensor*> by_name;
    for (const py::handle& item : params) {
      const auto fields = item.cast<py::tuple>();
      by_name[fields[0].cast<std::string>()] =
          keep(fields[1].cast<py::array>(), fields[2].cast<int>());
    }
    for (Node* node : graph->inputs) {
      const auto found = by_name.find(node->name);
      if (found != by_name.end()) node->tensor = found->second;
    }
  }
  ~MatchedArrays() { mxnet::ext::host::takeBackParams(graph_); }
  MatchedArrays(const MatchedArrays&) = delete;
  MatchedArrays& operator=(const MatchedArrays&) = delete;

  mxnet::ext::MXTensor* keep(const py::array& array, int dtype) {
    arrays_.push_back(array);
    std::vector<int64_t> shape(array.shape(), array.shape() + array.ndim());
    tensors_.emplace_back(const_cast<void*>(array.data()), std::move(shape),
                          static_cast<mxnet::ext::MXDType>(dtype), 0, mxnet::ext::MXContext::CPU());
    return &tensors_.back();
  }

 private:
  Graph* graph_;
  std::deque<mxnet::ext::MXTensor> tensors_;  // a deque, since nodes point to them
  std::vector<py::array> arrays_;
};

/// Updates what a graph notes of its names and outputs once patterns have changed it.
struct NotedEdit {
  EditedGraph* owner;
  ~NotedEdit() {
    owner->noteChange();
    owner->noteNames();
    owner->noteOutputs();
  }
};

/// Shows a graph as passes of libraries see it: with its own attributes, and with arrays.
class MatchedGraph {
 public:
  MatchedGraph(const GraphHandle& handle, const AttributeTexts& attributes, const py::list& params)
      : graph_(handle.graph), attributes_(parseAttributes(attributes)) {
    handle.owner->nodes(graph_);  // completes removals
    handle.owner->readTypes();
    graph_->attrs.swap(attributes_);
    arrays_ = std::make_unique<MatchedArrays>(graph_, params);
  }
  ~MatchedGraph() { graph_->attrs.swap(attributes_); }
  MatchedGraph(const MatchedGraph&) = delete;
  MatchedGraph& operator=(const MatchedGraph&) = delete;

  MatchedArrays* arrays() const { return arrays_.get(); }

 private:
  Graph* graph_;
  mxnet::ext::GraphAttributes attributes_;
  std::unique_ptr<MatchedArrays> arrays_;
};

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_EDITING_MATCHED_H_
