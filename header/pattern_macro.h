/// Registers a pass of patterns, which the block after it declares:
///
///     PATTERN_PASS(fuseMatMulAdd, "MatMul and Add become Gemm", "onnx") {
///       Pattern p("y = Add(MatMul(x, w:param), b:param)");
///       p.where([](const Match& m) { return m.rank("x") == 2 && m.broadcasts("b", "y"); });
///       p.replace("y = Gemm(x, w, b)");
///     }
///
/// After the description come the dialects, none for all. Both are declared, as by
/// CustomPass::describe and dialects. In the block, `pass` is the pass: pass.option("level", 1,
/// "How far to go.", 1, 3) declares an option, which conditions and functions read as
/// m.options().integer("level"). Patterns are compiled when the library is loaded; a host of
/// passlib refuses a library with one that is not well-formed.
#undef PATTERN_PASS
#define PATTERN_PASS(Name, ...)                                                   \
  static void MXNet_PatternsOf_##Name(mxnet::ext::CustomPass& pass);              \
  static mxnet::ext::MXReturnValue MXNet_RunPatterns_##Name(                      \
      mxnet::ext::Graph* graph, const mxnet::ext::OptionValues& options);         \
  static const mxnet::ext::detail::PatternPass MXNet_PatternPass_##Name(          \
      #Name, &MXNet_PatternsOf_##Name, &MXNet_RunPatterns_##Name, {__VA_ARGS__}); \
  static mxnet::ext::MXReturnValue MXNet_RunPatterns_##Name(                      \
      mxnet::ext::Graph* graph, const mxnet::ext::OptionValues& options) {        \
    return MXNet_PatternPass_##Name.run(graph, options);                          \
  }                                                                               \
  static void MXNet_PatternsOf_##Name(mxnet::ext::CustomPass& pass __attribute__((unused)))
