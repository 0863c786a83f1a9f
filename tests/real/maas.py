"""Holds a real MAAS to the contract that the lab's MAAS is held to.

    ./muster env -- python tests/real/maas.py --url http://maas.site.example:5240/MAAS --key file:maas.key

What it makes (machines, a pool, a zone, a tag) is called muster-contract; its machines are deleted at
the end. No other machine is changed, but for the one that --machine names: it is commissioned,
deployed, erased and released. Without it the tests of a machine's life are skipped.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent.parent


def main(arguments: list[str] | None = None) -> int:
    """Return pytest's exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", required=True, help="for example http://maas.site.example:5240/MAAS")
    parser.add_argument("--key", required=True, help="env:NAME or file:PATH; an API key itself works too")
    parser.add_argument("--machine", help="host name of a machine that may be wiped")
    parser.add_argument(
        "--image", default="", help="what to deploy, osystem/series; by default MAAS's own choice"
    )
    options, rest = parser.parse_known_args(arguments)
    os.environ["MUSTER_REAL_MAAS_URL"] = options.url
    os.environ["MUSTER_REAL_MAAS_KEY"] = _secret(options.key)
    os.environ["MUSTER_REAL_MAAS_IMAGE"] = options.image
    if options.machine:
        os.environ["MUSTER_REAL_MAAS_MACHINE"] = options.machine
    suite = str(HERE / "contract" / "maas")
    return int(pytest.main([suite, "-m", "real", "--timeout", "7200", "-p", "no:randomly", *rest]))


def _secret(reference: str) -> str:
    kind, _, where = reference.partition(":")
    if kind == "env":
        return os.environ[where]
    if kind == "file":
        return Path(where).read_text(encoding="utf-8").strip()
    return reference


if __name__ == "__main__":
    sys.exit(main())
