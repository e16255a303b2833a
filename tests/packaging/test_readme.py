"""README as a package index shows it: every link leads to the repository or elsewhere."""

from __future__ import annotations

import re
import sys
from email.parser import Parser
from pathlib import Path

from places import ROOT
from printed_blocks import shell

HOOK = """
import sys
from scikit_build_core import build
build.prepare_metadata_for_build_wheel(sys.argv[1])
"""


def test_links_of_the_metadata_are_absolute(tmp_path: Path) -> None:
    shell(ROOT, [sys.executable, "-c", HOOK, str(tmp_path)])
    (metadata,) = tmp_path.glob("*/METADATA")
    message = Parser().parsestr(metadata.read_text("utf-8"))
    assert message["Description-Content-Type"].startswith("text/markdown")
    links = re.findall(r"\]\(([^)\s]+)\)", message.get_payload())
    assert len(links) > 10
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    source = next(
        line.split(", ")[1] for line in message.get_all("Project-URL") if line.startswith("Source")
    )
    for link in links:
        kind, _, path = link.removeprefix(f"{source}/").partition("/main/")
        if kind in ("blob", "raw"):
            assert (ROOT / path.partition("#")[0]).exists(), link
