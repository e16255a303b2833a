"""Transformers as PyTorch exports them: operators that tools leave, and the time in ONNX Runtime.

``python bench/exported.py FOLDER --export`` writes small models with random weights of the
package transformers by both exporters of PyTorch, where both packages are installed: for fixed
sizes by the older (``NAME_older.onnx``) and the newer one (``NAME_newer.onnx``), and with open
sizes by the newer one (``NAME_open.onnx``).
``PYTHONPATH=tests/support python bench/exported.py FOLDER [--rounds N]`` prints the table: the
operators of each model, those that passlib leaves in its own operator set and in 23, and the
fewest that another tool leaves; times of one thread relative to the exported model, the best of
alternate rounds, the worse of batches of 1 and 8 where sizes are open.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

FORMS = ("older", "newer", "open")
SIZES: dict[str, Any] = {"vocab_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4}
WIDE: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 128}


def export(folder: Path) -> None:
    """Write the models; what an exporter refuses is reported."""
    import torch

    import transformers as library

    class Bare(torch.nn.Module):  # type: ignore[misc, name-defined]
        """A model with inputs by place and its first result."""

        def __init__(self, model: Any, names: list[str]) -> None:
            super().__init__()
            self.model, self.names = model, names

        def forward(self, *values: Any) -> Any:
            given = dict(zip(self.names, values, strict=True))
            return self.model(**given, return_dict=True)[0]

    torch.manual_seed(0)
    rows = {"input_ids": torch.randint(3, 90, (2, 12))}
    masked = {**rows, "attention_mask": torch.ones(2, 12, dtype=torch.long)}
    image = {"pixel_values": torch.randn(2, 3, 32, 32)}
    sound = {"input_features": torch.randn(2, 16, 100), "decoder_input_ids": rows["input_ids"]}
    made: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
        "bert": ("Bert", {**SIZES, **WIDE}, masked),
        "distilbert": ("DistilBert", {"vocab_size": 100, "dim": 64, "n_layers": 2, "n_heads": 4,
                                      "hidden_dim": 128}, masked),
        "roberta": ("Roberta", {**SIZES, **WIDE}, masked),
        "gpt2": ("GPT2", {"vocab_size": 100, "n_embd": 64, "n_layer": 2, "n_head": 4,
                          "n_positions": 64, "use_cache": False}, rows),
        "llama": ("Llama", {**SIZES, **WIDE, "num_key_value_heads": 2, "use_cache": False}, rows),
        "vit": ("ViT", {**SIZES, **WIDE, "image_size": 32, "patch_size": 8}, image),
        "whisper": ("Whisper", {"vocab_size": 100, "d_model": 64, "encoder_layers": 2,
                                "decoder_layers": 2, "encoder_attention_heads": 4,
                                "decoder_attention_heads": 4, "encoder_ffn_dim": 128,
                                "decoder_ffn_dim": 128, "max_source_positions": 50,
                                "max_target_positions": 32, "num_mel_bins": 16,
                                "use_cache": False, "pad_token_id": 0, "bos_token_id": 1,
                                "eos_token_id": 2, "decoder_start_token_id": 1}, sound),
        "t5": ("T5Encoder", {"vocab_size": 100, "d_model": 64, "d_kv": 16, "d_ff": 128,
                             "num_layers": 2, "num_heads": 4}, masked),
    }  # fmt: skip
    sizes = [torch.export.Dim(name) for name in ("batch", "rows")]
    for name, (kind, settings, given) in made.items():
        config = getattr(library, kind.removesuffix("Encoder") + "Config")(**settings)
        model = getattr(library, f"{kind}Model")(config).eval()
        for weight in model.parameters():
            if weight.dim() == 1:  # zeros and ones would vanish
                weight.data += 0.2 * torch.randn(weight.shape)
        for form in FORMS:
            values = tuple(each if form == "open" else each[:1] for each in given.values())
            more: dict[str, Any] = {"dynamo": form != "older"}
            if form == "open":
                dims = (dict(enumerate(sizes[: 1 if each.dim() > 2 else 2])) for each in values)
                more["dynamic_shapes"] = (tuple(dims),)
            try:
                torch.onnx.export(
                    Bare(model, list(given)).eval(), values, str(folder / f"{name}_{form}.onnx"),
                    input_names=list(given), opset_version=17 if form == "older" else 18, **more,
                )  # fmt: skip
            except Exception as error:
                sys.stderr.write(f"{name}, {form}: {type(error).__name__}\n")


def feeds(model: Any, batch: int, rows: int) -> dict[str, Any]:
    """Return random inputs; masks hide nothing."""
    random = np.random.default_rng(batch)
    sizes = {"batch": batch, "rows": rows}
    found: dict[str, Any] = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [sizes.get(dim.dim_param, dim.dim_value) for dim in tensor.shape.dim]
        if tensor.elem_type == 1:
            found[value.name] = random.standard_normal(shape).astype(np.float32)
        elif "mask" in value.name:
            found[value.name] = np.ones(shape, np.int64)
        else:
            found[value.name] = random.integers(3, 90, shape)
    return found


def repeated(run: Callable[[], Any], times: int) -> None:
    """Call a function several times."""
    for _ in range(times):
        run()


def row(path: Path, rounds: int) -> str:
    """Return the row of a model."""
    import onnx

    import passlib
    from blocks import operators, session
    from ratio import measure_ratio
    from simplify import TOOLS, count

    exported = onnx.load(path)
    before = exported.SerializeToString()
    others = {tool: operators(tool, before) for tool in TOOLS if tool != "passlib"}
    best = min((int(each), tool) for tool, each in others.items() if each.isdecimal())
    cells = [*path.stem.split("_"), str(count(exported.graph))]
    ratios = []
    for opset in (None, 23):
        model = passlib.load(before)
        made = (model.with_opset(opset) if opset else model).simplify()
        content = made.to_onnx_proto().SerializeToString()  # with large weights in it
        cells.append(str(count(onnx.load_from_string(content).graph)))
        pair = session(content), session(before)
        worst = 0.0
        for batch in (1, 8) if path.stem.endswith("open") else (1,):
            given = feeds(exported, batch, 16)
            ours, theirs = (
                partial(repeated, partial(each.run, None, given), 40 // batch) for each in pair
            )
            worst = max(worst, measure_ratio(ours, theirs, rounds=rounds).value)
        ratios.append(f"{worst:.2f}")
    return f"| {' | '.join([*cells, f'{best[0]} ({best[1]})', *ratios])} |"


def main() -> None:
    """Export, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--export", action="store_true", help="write the models (needs torch)")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    if arguments.export:
        export(arguments.folder)
        return
    titles = ("model", "exporter", "exported", "passlib", "passlib, 23", "best other", "time",
              "time, 23")  # fmt: skip
    sys.stdout.write(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}\n")
    for path in sorted(arguments.folder.glob("*_*.onnx")):
        sys.stdout.write(f"{row(path, arguments.rounds)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
