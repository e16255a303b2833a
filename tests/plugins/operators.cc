// Operators that behave: one for each thing that an operator may do.
#include <cmath>
#include <iostream>

#include "lib_api.h"

using namespace mxnet::ext;

namespace {

typedef std::unordered_map<std::string, std::string> Attributes;
typedef std::vector<unsigned int> Shape;

template <int inputs, int outputs>
MXReturnValue parse(const Attributes&, int* num_inputs, int* num_outputs) {
  *num_inputs = inputs;
  *num_outputs = outputs;
  return MX_SUCCESS;
}

// As many outputs, and as many inputs, as the attributes say.
MXReturnValue parseCounts(const Attributes& attributes, int* num_inputs, int* num_outputs) {
  *num_inputs = std::stoi(attributes.at("inputs"));
  *num_outputs = std::stoi(attributes.at("outputs"));
  return MX_SUCCESS;
}

MXReturnValue sameType(const Attributes&, std::vector<int>* in, std::vector<int>* out) {
  for (int& type : *in) {
    if (type == -1) type = in->at(0);
  }
  for (int& type : *out) type = in->at(0);
  return MX_SUCCESS;
}

MXReturnValue sameShape(const Attributes&, std::vector<Shape>* in, std::vector<Shape>* out) {
  for (Shape& shape : *in) {
    if (shape.empty()) shape = in->at(0);
  }
  for (Shape& shape : *out) shape = in->at(0);
  return MX_SUCCESS;
}

MXReturnValue sameStorage(const Attributes&, std::vector<int>* in, std::vector<int>* out) {
  out->at(0) = in->at(0);
  return MX_SUCCESS;
}

// Matrix products. Inputs are not const, for MXTensor::data of MXNet 1.9 is not.

void multiply(MXTensor& a, bool a_turned, MXTensor& b, bool b_turned, MXTensor* out) {
  const int64_t rows = out->shape[0], columns = out->shape[1];
  const int64_t depth = a.shape[a_turned ? 0 : 1];
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        sum += a.data<float>()[a_turned ? k * rows + i : i * depth + k] *
               b.data<float>()[b_turned ? j * depth + k : k * columns + j];
      }
      out->data<float>()[i * columns + j] = sum;
    }
  }
}

MXReturnValue productShape(const Attributes&, std::vector<Shape>* in, std::vector<Shape>* out) {
  const Shape& a = in->at(0);
  const Shape& b = in->at(1);
  if (a.size() != 2 || b.size() != 2 || a[1] != b[0]) {
    MX_ERROR_MSG << "these are no matrices that can be multiplied";
    return MX_FAIL;
  }
  out->at(0) = {a[0], b[1]};
  return MX_SUCCESS;
}

MXReturnValue product(const Attributes&, std::vector<MXTensor>* in, std::vector<MXTensor>* out,
                      const OpResource&) {
  multiply(in->at(0), false, in->at(1), false, &out->at(0));
  return MX_SUCCESS;
}

MXReturnValue productBackward(const Attributes&, std::vector<MXTensor>* in,
                              std::vector<MXTensor>* out, const OpResource&) {
  multiply(in->at(0), false, in->at(2), true, &out->at(0));
  multiply(in->at(1), true, in->at(0), false, &out->at(1));
  return MX_SUCCESS;
}

// State: counts its calls, and how many states there are.

int alive = 0;

class Counter : public CustomStatefulOp {
 public:
  explicit Counter(float start) : count_(start) { ++alive; }
  ~Counter() override {
    --alive;
    std::cout << "counter destroyed" << std::endl;
  }
  MXReturnValue Forward(std::vector<MXTensor>* in, std::vector<MXTensor>* out,
                        const OpResource&) override {
    count_ += 1;
    for (int64_t i = 0; i < in->at(0).size(); ++i) {
      out->at(0).data<float>()[i] = in->at(0).data<float>()[i] + count_;
    }
    return MX_SUCCESS;
  }
  MXReturnValue Backward(std::vector<MXTensor>* in, std::vector<MXTensor>* out,
                         const OpResource&) override {
    for (int64_t i = 0; i < in->at(0).size(); ++i) {
      out->at(0).data<float>()[i] = in->at(0).data<float>()[i] * count_;
    }
    return MX_SUCCESS;
  }

 private:
  float count_;
};

// Starts at what it is told about its input.
MXReturnValue createCounter(const Attributes& attributes, const MXContext& context,
                            const std::vector<Shape>& shapes, const std::vector<int> types,
                            CustomStatefulOp** state) {
  if (context.dev_type != "cpu" || shapes.size() != types.size()) return MX_FAIL;
  float start = attributes.count("start") ? std::stof(attributes.at("start")) : 0;
  if (attributes.count("from_shape")) start = static_cast<float>(shapes[0].at(0) * 10 + types[0]);
  *state = CustomStatefulOp::create<Counter>(start);
  return MX_SUCCESS;
}

MXReturnValue countAlive(const Attributes&, std::vector<MXTensor>*, std::vector<MXTensor>* out,
                         const OpResource&) {
  out->at(0).data<float>()[0] = static_cast<float>(alive);
  return MX_SUCCESS;
}

MXReturnValue oneFloat(const Attributes&, std::vector<Shape>*, std::vector<Shape>* out) {
  out->at(0) = {1};
  return MX_SUCCESS;
}

MXReturnValue floatType(const Attributes&, std::vector<int>*, std::vector<int>* out) {
  for (int& type : *out) type = kFloat32;
  return MX_SUCCESS;
}

// Writes to its second input.

MXReturnValue accumulate(const Attributes&, std::vector<MXTensor>* in, std::vector<MXTensor>* out,
                         const OpResource&) {
  for (int64_t i = 0; i < in->at(0).size(); ++i) {
    in->at(1).data<float>()[i] += in->at(0).data<float>()[i];
    out->at(0).data<float>()[i] = in->at(1).data<float>()[i];
  }
  return MX_SUCCESS;
}

MXReturnValue mutateSecond(const Attributes&, std::vector<int>* indices) {
  indices->push_back(1);
  return MX_SUCCESS;
}

// Sparse arrays.

MXReturnValue turnedShape(const Attributes&, std::vector<Shape>* in, std::vector<Shape>* out) {
  out->at(0) = {in->at(0).at(1), in->at(0).at(0)};
  return MX_SUCCESS;
}

MXReturnValue transposeCsr(const Attributes&, std::vector<MXTensor>* in, std::vector<MXTensor>* out,
                           const OpResource& resource) {
  const MXSparse* a = in->at(0).data<MXSparse>();
  MXSparse* b = out->at(0).data<MXSparse>();
  const int64_t rows = in->at(0).shape[0], columns = in->at(0).shape[1];
  resource.alloc_sparse(b, 0, static_cast<int>(a->data_len), static_cast<int>(columns + 1));
  int64_t next = 0;
  b->indptr[0] = 0;
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t k = a->indptr[row]; k < a->indptr[row + 1]; ++k) {
        if (a->indices[k] != column) continue;
        static_cast<float*>(b->data)[next] = static_cast<const float*>(a->data)[k];
        b->indices[next++] = row;
      }
    }
    b->indptr[column + 1] = next;
  }
  return MX_SUCCESS;
}

void takeAbsolute(const float* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = std::fabs(from[i]);
}

// Of dense arrays, and of row_sparse ones.
MXReturnValue absolute(const Attributes&, std::vector<MXTensor>* in, std::vector<MXTensor>* out,
                       const OpResource& resource) {
  if (in->at(0).stype == kDefaultStorage) {
    takeAbsolute(in->at(0).data<float>(), out->at(0).data<float>(), in->at(0).size());
    return MX_SUCCESS;
  }
  const MXSparse* a = in->at(0).data<MXSparse>();
  MXSparse* b = out->at(0).data<MXSparse>();
  // The first request is too large, so that there are two.
  resource.alloc_sparse(b, 0, static_cast<int>(in->at(0).shape[0]));
  resource.alloc_sparse(b, 0, static_cast<int>(a->indices_len));
  takeAbsolute(static_cast<const float*>(a->data), static_cast<float*>(b->data), a->data_len);
  for (int64_t i = 0; i < a->indices_len; ++i) b->indices[i] = a->indices[i];
  return MX_SUCCESS;
}

// Random numbers: one of each of the first generators.

MXReturnValue int64Type(const Attributes&, std::vector<int>*, std::vector<int>* out) {
  out->at(0) = kInt64;
  return MX_SUCCESS;
}

MXReturnValue draw(const Attributes&, std::vector<MXTensor>*, std::vector<MXTensor>* out,
                   const OpResource& resource) {
  mx_cpu_rand_t* states = resource.get_cpu_rand_states();
  for (int64_t i = 0; i < out->at(0).size(); ++i) {
    out->at(0).data<int64_t>()[i] = static_cast<int64_t>(states[i]());
  }
  return MX_SUCCESS;
}

// Scratch memory: reverses by way of it.

MXReturnValue reverse(const Attributes&, std::vector<MXTensor>* in, std::vector<MXTensor>* out,
                      const OpResource& resource) {
  const int64_t count = in->at(0).size();
  float* scratch = static_cast<float*>(resource.alloc_cpu(static_cast<int>(count * sizeof(float))));
  for (int64_t i = 0; i < count; ++i) scratch[i] = in->at(0).data<float>()[count - 1 - i];
  for (int64_t i = 0; i < count; ++i) out->at(0).data<float>()[i] = scratch[i];
  return resource.alloc_cpu(0) != nullptr ? MX_SUCCESS : MX_FAIL;
}

// Any number of inputs and outputs: output i is the sum of the inputs, plus i. Says what it does.

MXReturnValue sums(const Attributes& attributes, std::vector<MXTensor>* in,
                   std::vector<MXTensor>* out, const OpResource&) {
  std::cout << "sums";
  for (const char* key : {"inputs", "outputs", "note"}) {
    if (attributes.count(key)) std::cout << ' ' << key << '=' << attributes.at(key);
  }
  std::cout << std::endl;
  for (std::size_t k = 0; k < out->size(); ++k) {
    for (int64_t i = 0; i < out->at(k).size(); ++i) {
      float sum = static_cast<float>(k);
      for (MXTensor& tensor : *in) sum += tensor.data<float>()[i];
      out->at(k).data<float>()[i] = sum;
    }
  }
  return MX_SUCCESS;
}

MXReturnValue countsShape(const Attributes&, std::vector<Shape>* in, std::vector<Shape>* out) {
  for (Shape& shape : *out) shape = in->empty() ? Shape{2} : in->at(0);
  return MX_SUCCESS;
}

// The matrix twice, one below the other; it computes with unknown sizes as with numbers.
MXReturnValue stackedShape(const Attributes&, std::vector<Shape>* in, std::vector<Shape>* out) {
  const Shape& given = in->at(0);
  out->at(0) = {2 * given.at(0), given.at(1) / 2 * 2};
  return MX_SUCCESS;
}

// The shape of a weight from that of the data, whose first size must be a multiple of 7.
MXReturnValue weightedShape(const Attributes&, std::vector<Shape>* in, std::vector<Shape>* out) {
  const Shape& given = in->at(0);
  if (given.at(0) != 0xFFFFFFFFU && given.at(0) % 7 != 0) return MX_FAIL;
  in->at(1) = {given.at(1) * 2};
  out->at(0) = {given.at(0) / 7, given.at(1) - given.at(2) + 1};
  return MX_SUCCESS;
}

MXReturnValue stack(const Attributes&, std::vector<MXTensor>* in, std::vector<MXTensor>* out,
                    const OpResource&) {
  const int64_t rows = in->at(0).shape[0], columns = in->at(0).shape[1], kept = columns / 2 * 2;
  for (int64_t i = 0; i < 2 * rows * kept; ++i) {
    out->at(0).data<float>()[i] = in->at(0).data<float>()[i / kept % rows * columns + i % kept];
  }
  return MX_SUCCESS;
}

class RunsNothing : public CustomStatefulOp {
 public:
  MXReturnValue Forward(std::vector<MXTensor>*, std::vector<MXTensor>*,
                        const OpResource&) override {
    return MX_SUCCESS;
  }
};

MXReturnValue createNothing(const Attributes&, const MXContext&, const std::vector<Shape>&,
                            const std::vector<int>, CustomStatefulOp** state) {
  *state = CustomStatefulOp::create<RunsNothing>();
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(plugin_product)
    .setForward(product, "cpu")
    .setBackward(productBackward, "cpu")
    .setParseAttrs(parse<2, 1>)
    .setInferType(sameType)
    .setInferShape(productShape);
REGISTER_OP(plugin_counter)
    .setCreateOpState(createCounter, "cpu")
    .setParseAttrs(parse<1, 1>)
    .setInferType(sameType)
    .setInferShape(sameShape);
REGISTER_OP(plugin_alive)
    .setForward(countAlive, "cpu")
    .setParseAttrs(parse<0, 1>)
    .setInferType(floatType)
    .setInferShape(oneFloat);
REGISTER_OP(plugin_accumulate)
    .setForward(accumulate, "cpu")
    .setParseAttrs(parse<2, 1>)
    .setInferType(sameType)
    .setInferShape(sameShape)
    .setMutateInputs(mutateSecond);
REGISTER_OP(plugin_transpose)
    .setForward(transposeCsr, "cpu")
    .setParseAttrs(parse<1, 1>)
    .setInferType(sameType)
    .setInferShape(turnedShape)
    .setInferSType(sameStorage);
REGISTER_OP(plugin_abs)
    .setForward(absolute, "cpu")
    .setParseAttrs(parse<1, 1>)
    .setInferType(sameType)
    .setInferShape(sameShape)
    .setInferSType(sameStorage);
REGISTER_OP(plugin_draw)
    .setForward(draw, "cpu")
    .setParseAttrs(parse<1, 1>)
    .setInferType(int64Type)
    .setInferShape(sameShape);
REGISTER_OP(plugin_reverse)
    .setForward(reverse, "cpu")
    .setParseAttrs(parse<1, 1>)
    .setInferType(sameType)
    .setInferShape(sameShape);
REGISTER_OP(plugin_sums)
    .setForward(sums, "cpu")
    .setParseAttrs(parseCounts)
    .setInferType(floatType)
    .setInferShape(countsShape);
REGISTER_OP(plugin_stack)
    .setForward(stack, "cpu")
    .setParseAttrs(parse<1, 1>)
    .setInferType(sameType)
    .setInferShape(stackedShape);
REGISTER_OP(plugin_weighted)
    .setForward(product, "cpu")
    .setParseAttrs(parse<2, 1>)
    .setInferType(sameType)
    .setInferShape(weightedShape);
REGISTER_OP(_contrib_plugin_abs)
    .setForward(absolute, "cpu")
    .setParseAttrs(parse<1, 1>)
    .setInferType(sameType)
    .setInferShape(sameShape);
REGISTER_OP(_plugin_subgraph).setIsSubgraphOp().setCreateOpState(createNothing, "cpu");

MXReturnValue initialize(int) { return MX_SUCCESS; }
