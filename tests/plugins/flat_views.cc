// A library without the header's entry points, which returns graphs in the flat form that cannot
// be. -DVERSION=n: another version of that form; -DNO_FREE: nothing that releases results; with
// either, -DONLY=name: the name of the only pass.
#define PASSLIB_NO_ENTRY_POINTS
#include <memory>

#include "lib_api.h"

using namespace mxnet::ext;

#ifndef VERSION
#define VERSION PASSLIB_FLAT_VERSION
#endif

namespace {

FlatText text(const char* chars) { return FlatText{chars, strlen(chars)}; }

constexpr uint64_t kWild = uint64_t(1) << 60;

/// relu(x) with two attributes and two further members.
struct View {
  std::vector<FlatGraph> graphs{{2, 1, 0}};
  std::vector<FlatNode> nodes;
  std::vector<FlatEdge> edges{{0, 0, 0}, {1, 0, 0}};
  std::vector<uint32_t> deps;
  std::vector<FlatPair> pairs{{text("note"), text("[1, 2]")}, {text("more"), text("\"text\"")}};
  // a: "1", bb: "2" in six bytes
  std::vector<uint32_t> packed{2, 5, 1, 1, 2, 1, 0, 0};
  FlatModel model{};

  View() {
    FlatNode x{};
    x.op = text("null");
    x.name = text("x");
    FlatNode relu{};
    relu.op = text("relu");
    relu.name = text("r");
    relu.num_inputs = 1;
    relu.num_extra = 2;
    memcpy(&packed[6], "a1bb2", 5);
    relu.packed = packed.data();
    relu.packed_words = 8;
    nodes = {x, relu};
  }
  /// Points the model at the arrays, which may have been changed.
  void close() {
    model = FlatModel{PASSLIB_FLAT_VERSION,
                      sizeof(FlatModel),
                      graphs.data(),
                      graphs.size(),
                      nodes.data(),
                      nodes.size(),
                      edges.data(),
                      edges.size(),
                      deps.data(),
                      deps.size(),
                      pairs.data(),
                      pairs.size(),
                      0,
                      {nullptr, nullptr},
                      nullptr};
    for (const FlatNode& node : nodes) model.packed_words += node.packed_words;
  }
};

typedef void (*change_t)(View* view);
struct Case {
  const char* name;
  change_t arrays;  // before the model points at them
  change_t model;   // after that
};

FlatNode& relu(View* view) { return view->nodes[1]; }
void none(View*) {}

void asPairs(View* view) {
  relu(view).packed = nullptr;
  relu(view).packed_words = 0;
  relu(view).num_attrs = 2;
  const FlatPair same{text("a"), text("1")};
  view->pairs.insert(view->pairs.begin(), {same, same});
}

void nestDeeply(View* view) {
  relu(view).num_subgraphs = 1;
  for (int i = 0; i < 101; ++i) {
    view->graphs.push_back({1, 1, 0});
    view->nodes.push_back(view->nodes[0]);
    view->nodes.back().num_subgraphs = i < 100 ? 1 : 0;
    view->edges.push_back({0, 0, 0});
  }
}

/// Texts that overlap, so that copies of them take far more memory than they do.
void overlap(View* view) {
  static const std::string& large = *new std::string(1 << 10, 'n');
  view->nodes[0].name = FlatText{large.data(), large.size()};
  view->nodes[1].name = FlatText{large.data(), kWild};
}

const Case kCases[] = {
    {"flatPlain", none, none},
    {"flatNullNodes", none, [](View* v) { v->model.nodes = nullptr; }},
    {"flatNullEdges", none, [](View* v) { v->model.edges = nullptr; }},
    {"flatNullPairs", none, [](View* v) { v->model.pairs = nullptr; }},
    {"flatNullGraphs", none, [](View* v) { v->model.graphs = nullptr; }},
    {"flatWildNodes", none, [](View* v) { v->model.num_nodes = kWild; }},
    {"flatWildEdges", none, [](View* v) { v->model.num_edges = UINT64_MAX; }},
    {"flatWildPairs", none, [](View* v) { v->model.num_pairs = UINT64_MAX / 2; }},
    {"flatWildGraphs", none, [](View* v) { v->model.num_graphs = kWild; }},
    {"flatNoGraphs", none, [](View* v) { v->model.num_graphs = 0; }},
    {"flatOddNodes", none,
     [](View* v) {
       const auto address = reinterpret_cast<uintptr_t>(v->model.nodes) + 1;
       v->model.nodes = reinterpret_cast<const FlatNode*>(address);
     }},
    {"flatVersion", none, [](View* v) { v->model.version = 9; }},
    {"flatHead", none, [](View* v) { v->model.size = 8; }},
    {"flatWords", none, [](View* v) { v->model.packed_words = 7; }},
    {"flatNodesBeyond", [](View* v) { v->graphs[0].num_nodes = UINT64_MAX; }, none},
    {"flatNodesLeft", [](View* v) { v->nodes.push_back(v->nodes[0]); }, none},
    {"flatEdgesLeft", [](View* v) { v->edges.push_back({0, 0, 0}); }, none},
    {"flatDepsLeft", [](View* v) { v->deps.push_back(0); }, none},
    {"flatPairsLeft", [](View* v) { v->pairs.push_back(v->pairs[0]); }, none},
    {"flatGraphsLeft", [](View* v) { v->graphs.push_back({0, 0, 0}); }, none},
    {"flatInputsBeyond", [](View* v) { relu(v).num_inputs = UINT32_MAX; }, none},
    {"flatDepsBeyond", [](View* v) { relu(v).num_control_deps = 1; }, none},
    {"flatExtraBeyond", [](View* v) { relu(v).num_extra = 3; }, none},
    {"flatHeadsBeyond", [](View* v) { v->graphs[0].num_outputs = kWild; }, none},
    {"flatAttrsBeyond", [](View* v) { v->graphs[0].num_attrs = 1; }, none},
    {"flatSubgraphsBeyond", [](View* v) { relu(v).num_subgraphs = 1; }, none},
    {"flatNested", nestDeeply, none},
    {"flatFarInput", [](View* v) { v->edges[0].node = 7; }, none},
    {"flatFarHead", [](View* v) { v->edges[1].node = UINT32_MAX; }, none},
    {"flatFarDep",
     [](View* v) {
       relu(v).num_control_deps = 1;
       v->deps.push_back(2);
     },
     none},
    {"flatSelf", [](View* v) { v->edges[0].node = 1; }, none},
    {"flatOutput", [](View* v) { v->edges[1].entry = -5; }, none},
    {"flatEntryVersion", [](View* v) { v->edges[0].version = -1; }, none},
    {"flatDeclared", [](View* v) { relu(v).outputs_declared = 2; }, none},
    {"flatNumOutputs", [](View* v) { relu(v).num_outputs = -2; }, none},
    {"flatNullName", [](View* v) { relu(v).name = FlatText{nullptr, 3}; }, none},
    {"flatNullOp", [](View* v) { relu(v).op.data = nullptr; }, none},
    {"flatWildName", overlap, none},
    {"flatNoOp", [](View* v) { relu(v).op.size = 0; }, none},
    {"flatBytes", [](View* v) { relu(v).name = text("caf\xE9"); }, none},
    {"flatTwin", [](View* v) { relu(v) = v->nodes[0], v->edges = {{0, 0, 0}}, v->pairs.clear(); },
     none},
    {"flatPackedNull", [](View* v) { relu(v).packed = nullptr; }, none},
    {"flatPackedShort", [](View* v) { relu(v).packed_words = 1; }, none},
    {"flatPackedLong",
     [](View* v) {
       v->packed.push_back(0), relu(v).packed = v->packed.data(), relu(v).packed_words = 9;
     },
     none},
    {"flatPackedNone", [](View* v) { v->packed[0] = 0; }, none},
    {"flatPackedMany", [](View* v) { v->packed[0] = 65; }, none},
    {"flatPackedKey", [](View* v) { v->packed[2] = UINT32_MAX; }, none},
    {"flatPackedText", [](View* v) { v->packed[5] = UINT32_MAX; }, none},
    {"flatPackedRest", [](View* v) { v->packed[5] = 0; }, none},
    {"flatPackedOrder", [](View* v) { memcpy(&v->packed[6], "c1bb2", 5); }, none},
    {"flatPackedFilling", [](View* v) { memcpy(&v->packed[6], "a1bb2X", 6); }, none},
    {"flatPackedOdd",
     [](View* v) {
       const auto address = reinterpret_cast<uintptr_t>(relu(v).packed) + 1;
       relu(v).packed = reinterpret_cast<const uint32_t*>(address);
     },
     none},
    {"flatPackedBytes", [](View* v) { memcpy(&v->packed[6], "a\xFF", 2); }, none},
    {"flatPackedBoth", [](View* v) { relu(v).num_attrs = 1, relu(v).num_extra = 1; }, none},
    {"flatAttributeTwice", asPairs, none},
    {"flatMemberTwice", [](View* v) { v->pairs[1].key = v->pairs[0].key; }, none},
    {"flatMemberBroken", [](View* v) { v->pairs[0].text = text("[1, "); }, none},
    {"flatMemberEmpty", [](View* v) { v->pairs[0].text.size = 0; }, none},
    {"flatMemberRest", [](View* v) { v->pairs[0].text = text("1 2"); }, none},
    {"flatMemberNull", [](View* v) { v->pairs[0].text.data = nullptr; }, none},
    {"flatMemberBytes", [](View* v) { v->pairs[0].key = text("\xFF"); }, none},
};

constexpr int kCount = sizeof(kCases) / sizeof(kCases[0]);
int freed = 0;

}  // namespace

extern "C" {

PASSLIB_EXPORT int _opVersion() { return MX_LIBRARY_VERSION; }
MXReturnValue initialize(int) { return MX_SUCCESS; }
PASSLIB_EXPORT void _opCallFree(void* memory) { free(memory); }
#ifdef ONLY
PASSLIB_EXPORT int _passRegSize() { return 1; }
#else
PASSLIB_EXPORT int _passRegSize() { return kCount + 2; }
#endif
PASSLIB_EXPORT void _passRegGet(int idx, graphPass_t* function, const char** name) {
  *function = nullptr;
#ifdef ONLY
  *name = MX_TOSTRING(ONLY);
  if (idx == 0) return;
#endif
  *name = idx < kCount ? kCases[idx].name : idx == kCount ? "flatNothing" : "flatEcho";
}
PASSLIB_EXPORT int _passCallGraphPass(graphPass_t, const char* in, char** out, const char* const*,
                                      const char* const*, int, const char*, const char* const*, int,
                                      void* const*, const int64_t* const*, const int*, const int*,
                                      const size_t*, const char* const*, const int*,
                                      const char* const*, int, void* const*, const int64_t* const*,
                                      const int*, const int*, const size_t*, const char* const*,
                                      const int*, nd_malloc_t, const void*) {
  *out = strdup(in);
  return MX_SUCCESS;
}
PASSLIB_EXPORT int _passlibFlatVersion() { return VERSION; }
/// How many results the host released.
PASSLIB_EXPORT int freedResults() { return freed; }
#ifndef NO_FREE
PASSLIB_EXPORT void _passlibFreeFlat(const FlatModel* model) {
  ++freed;
  delete static_cast<View*>(model->owner);
}
#endif
PASSLIB_EXPORT int _passlibCallFlatPass(
    graphPass_t, const FlatModel* in, const FlatModel** out, const char* const*, const char* const*,
    int, const char* pass_name, const char* const*, int, void* const*, const int64_t* const*,
    const int*, const int*, const size_t*, const char* const*, const int*, const char* const*, int,
    void* const*, const int64_t* const*, const int*, const int*, const size_t*, const char* const*,
    const int*, nd_malloc_t, const void*) {
  *out = nullptr;
  if (strcmp(pass_name, "flatNothing") == 0) return MX_SUCCESS;
  std::unique_ptr<View> view(new View());
  if (strcmp(pass_name, "flatEcho") == 0) {  // what the host made itself
    view->model = *in;
  } else {
    for (const Case& one : kCases) {
      if (strcmp(one.name, pass_name) != 0) continue;
      one.arrays(view.get());
      view->close();
      one.model(view.get());
    }
  }
  view->model.owner = view.get();
  *out = &view.release()->model;
  return MX_SUCCESS;
}

}  // extern "C"
