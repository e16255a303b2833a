"""The NNVM dialect: graph JSON of NNVM, of TVM's graph executor, and of early MXNet."""
