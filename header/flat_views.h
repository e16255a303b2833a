// ---- what hosts give to libraries: plain arrays and functions ----------------------------------

/// Version of the flat form of graphs: the structs whose names begin with Flat. A host uses it only
/// with libraries of the same version.
#define PASSLIB_FLAT_VERSION 2

/// A text, not terminated. `data` may be null if `size` is 0.
struct FlatText {
  const char* data;
  uint64_t size;
};
/// An attribute, or a member of a JSON object, whose value is then JSON.
struct FlatPair {
  FlatText key;
  FlatText text;
};
/// The end of an edge: the position of the producer in its graph, its output, and the version.
struct FlatEdge {
  uint32_t node;
  int32_t entry;
  int32_t version;
};
/// A node. In a result, `op`, `name` and `packed` may be those of the node that the host showed at
/// this place of the outermost graph. Its inputs, attributes and subgraphs are the next
/// `num_...` items of the model's arrays.
struct FlatNode {
  FlatText op;
  FlatText name;
  /// Attributes in one block: their number n, at most 64; the bytes of all texts; n times the bytes
  /// of key and text; key and text in turn, without terminators; zeros up to a multiple of 4 bytes.
  /// Sorted by the bytes of the keys, none of which occurs twice. May be null; aligned to 4 bytes.
  const uint32_t* packed;
  uint32_t packed_words;      ///< length of `packed`; 0 if it is null
  uint32_t num_attrs;         ///< in `pairs`, in any order: attributes that are not packed
  uint32_t num_extra;         ///< in `pairs`, behind them: Node::extra
  uint32_t num_inputs;        ///< in `edges`
  uint32_t num_control_deps;  ///< in `control_deps`
  uint32_t num_subgraphs;     ///< in `graphs`
  int32_t num_outputs;        ///< as in Node
  uint32_t outputs_declared;  ///< 1: num_outputs is known for the present operator; 0: it is not
};
/// A graph. Its nodes lie in the model's `nodes`, behind those of the graphs before it. Behind what
/// its nodes have in the other arrays come its outputs, in `edges`, and its attributes, in `pairs`.
struct FlatGraph {
  uint64_t num_nodes;
  uint64_t num_outputs;
  uint64_t num_attrs;
};
/// The host's memory for large pieces: it knows how to get them from the kernel quickly. allocate
/// returns memory aligned to 64 bytes, or null; release takes it back. Both may be called in any
/// thread, also after the call of a pass.
struct FlatMemory {
  void* (*allocate)(uint64_t size);
  void (*release)(void* memory);
};
/// A graph with all that is nested in it, as plain arrays, for compilers and standard libraries
/// with different C++ types. graphs[0] is the outermost; the others are the subgraphs of all nodes
/// in turn. An array may be null if its length is 0. The texts are UTF-8. All belongs to who made
/// it, and none of it is changed; arrays of a result may be those that the host showed.
struct FlatModel {
  uint32_t version;  ///< PASSLIB_FLAT_VERSION
  uint32_t size;     ///< sizeof(FlatModel)
  const FlatGraph* graphs;
  uint64_t num_graphs;
  const FlatNode* nodes;
  uint64_t num_nodes;
  const FlatEdge* edges;
  uint64_t num_edges;
  const uint32_t* control_deps;  ///< positions of nodes in their graph
  uint64_t num_control_deps;
  const FlatPair* pairs;
  uint64_t num_pairs;
  uint64_t packed_words;  ///< of all nodes
  FlatMemory memory;      ///< of the host; nothing looks at that of a result
  void* owner;            ///< for who made it
  /// Null, or infers the types of all nodes: returns __ext_shape__ and __ext_dtype__ of each node
  /// of graphs[0] in turn, which stay valid until the call of the pass returns; null if that
  /// failed, and then the host fails the call. Any thread may call it, before the pass returns.
  const FlatText* (*types)(const void* host);
  const void* host;  ///< what `types` gets
};

typedef int (*interrupted_t)(const void* host);
/// Sets *data to the elements of a parameter on demand, aligned, valid until the call returns; null
/// if there is no memory for them. nd_alloc: of the call; weight: ID of the parameter in its block.
typedef void (*readWeight_t)(const void* nd_alloc, size_t weight, const void** data);
/// Makes the argument `name` of the elements of a parameter on demand, each run of (elements /
/// count) of them multiplied by one factor. For a null `name` it makes nothing, and says whether
/// all results are finite. Returns 1, 0 for a result that is not finite, or -1 if this is not
/// possible for such a parameter.
typedef int (*scaleWeight_t)(const void* nd_alloc, size_t weight, const double* factors,
                             size_t count, const char* name);
/// Allocates an array that the host owns: shape has num_dims numbers; *data is the memory, null if
/// the host refuses. isArg: 1 for args, 0 for aux.
typedef void (*nd_malloc_t)(const void* allocator, const int64_t* shape, int num_dims,
                            const char* dev_type, int dev_id, int dtype, const char* name,
                            int isArg, void** data);
