"""Expected messages of failing operators, by kind of failure."""

from __future__ import annotations

FAILURES: dict[str, str] = {
    **{
        how.format(function): words.format(function=function, does=does)
        for function, does in (
            ("parse", "to parse its attributes"),
            ("mutate", "to name the inputs that it writes to"),
            ("shape", "to infer shapes"),
            ("type", "to infer types"),
            ("storage", "to infer storage types"),
            ("forward", "in forward"),
        )
        for how, words in (
            ("{} fails", r"failed {does}\n  .*: {function} does not want to$"),
            ("{} is silent", "failed {does} without saying why: it returned MX_FAIL"),
            ("{} throws", r"failed {does}.*{function} has thrown"),
            ("{} throws int", r"failed {does}.*not a std::exception"),
        )
    },
    "negative inputs": "reports that it has -1 inputs and 1 outputs",
    "huge inputs": "reports that it has 2000000000 inputs",
    "negative outputs": "2 inputs and -5 outputs",
    "no outputs": "2 inputs and 0 outputs; .*at least one output",
    "huge outputs": "and 2000000000 outputs",
    "shape contradicts": r"infers the shape \(9, 9\) for its input 0, which has the shape \(2, 3\)",
    "rank contradicts": r"infers the shape \(2\) for its input 1, which has the shape \(2, 3\)",
    "huge rank": "its output 0 has 100000 dimensions; 0 to 32 are possible",
    "shape is huge": "needs more memory for its output 0 than the system has",
    "shape is unknown": "infers no complete shape for its output 0",
    "type contradicts": "infers int8 for its input 1, which is float32",
    "type of input is nonsense": "infers the type code 77 for its input 0",
    "type is nonsense": "infers the type code 99 for its output 0; the codes are 0 to 12",
    "type is unknown": "infers no element type for its output 0",
    "storage is nonsense": "infers storage type 7 for its output 0",
    "storage is unknown": "infers storage type -1 for its output 0",
    "storage contradicts": "requires storage type 2 for its input 1, which has storage type 0",
    "csr of one dimension": (
        r"storage type csr for its output 0, which the shape \(4,\) does not allow"
    ),
    "mutates input 5": "writes to its input 5; it has 2, counted from 0",
    "mutates input -1": "writes to its input -1; it has 2",
    "changes a state and fails": "failed in forward\n  .*too late",
    "negative memory": "failed in forward.*requests -8 bytes of memory",
    "swallows a refusal": "failed in forward: it requests -8 bytes of memory",
    "sparse memory of dense": "memory of its output 0, which is dense",
    "sparse memory of output 3": "memory of its output 3; it has 1, counted from 0",
    "sparse memory of output -1": "memory of its output -1; it has 1",
    "too many rows": "output 0 for 3 rows of 2",
    "negative rows": "output 0 for -1 rows of 2",
    "indptr of rows": "indptr of 2 elements; row_sparse arrays have none",
    "wrong indptr": "indptr of 2 elements; a csr matrix of 2 rows has 3",
    "row out of range": "gave a row_sparse array that is not sound as its output 0: .*from 2 to 2",
    "indptr falls": "gave a csr array that is not sound as its output 0: .*does not rise",
}
STATE_FAILURES = {
    "create fails": r"failed to make its state\n  .*create does not want to$",
    "create is silent": "failed to make its state without saying why",
    "create throws": "failed to make its state.*create has thrown",
    "create throws int": "failed to make its state.*not a std::exception",
    "no state": "made no state",
    "forward throws int": "failed in forward.*not a std::exception",
    "forward fails": "failed in forward\n  .*forward does not want to$",
}
MEMORY = {
    "past the end": "wrote up to 8 bytes past the end of its output 0 of 24 bytes",
    "before the beginning": "wrote up to 12 bytes before the beginning of its output 0",
    "past the end of memory": "wrote up to 1 bytes past the end of memory of 10 bytes that it had",
    "writes to an input": "wrote to its input 0, which setMutateInputs does not name",
}
PLAIN = {
    "no shapes": "returns no shapes for its inputs",
    "negative rank": "its output 0 has -3 dimensions",
    "rank of input": "its input 0 has 1000000000 dimensions",
    "null shape": "returns no shape for its output 0",
    "half made": "failed to infer shapes without saying why",
    "negative count": "reports that it writes to -1 inputs",
    "no indices": "reports that it writes to 3 inputs",
}
