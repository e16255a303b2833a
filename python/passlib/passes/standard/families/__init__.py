"""Standard passes on the models of MXNet, NNVM and DLPrimitives."""
