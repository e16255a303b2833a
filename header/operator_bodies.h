// ---- operators ---------------------------------------------------------------------------------

inline MXReturnValue CustomStatefulOp::Backward(std::vector<MXTensor>*, std::vector<MXTensor>*,
                                                const OpResource&) {
  MX_ERROR_MSG << "this operator has no Backward";
  return MX_FAIL;
}

template <typename Function>
CustomOp& CustomOp::add(Function function, const char* ctx, const char* what,
                        std::vector<Function>* functions, std::vector<const char*>* contexts) {
  // No exception: this runs while the library is loaded, and nothing could catch it.
  for (const char* known : *contexts) {
    if (strcmp(known, ctx) != 0) continue;
    MXerrorMsgs::get()->add(std::string("operator '") + name + "' has two " + what +
                            " functions for the context '" + ctx + "'");
    valid = false;
  }
  functions->push_back(function);
  contexts->push_back(ctx);
  return *this;
}
