"""Types and shapes of outputs that follow without lowering."""
