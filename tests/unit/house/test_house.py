"""The house rules that no linter knows."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("bmc", "health", "inventory", "provision", "lab")
# The collector is one file because it travels to nodes through a pipe.
ONE_FILE = {"health/collector.py"}
VAGUE = {"utils", "common", "helpers", "manager", "handler", "misc", "core"}


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, capture_output=True, check=True, text=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def modules() -> list[Path]:
    return [path for path in tracked("*.py") if path.relative_to(ROOT).parts[0] in PACKAGES]


def test_no_module_grows_past_six_hundred_lines() -> None:
    sizes = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules()}
    assert {name: size for name, size in sizes.items() if size > 600 and name not in ONE_FILE} == {}


def test_module_names_say_what_is_in_them() -> None:
    assert [path for path in modules() if path.stem in VAGUE] == []


@pytest.mark.parametrize("path", tracked("docs/adr/*.md"), ids=lambda path: path.stem)
def test_an_adr_has_its_number_in_its_heading_and_says_what_it_must(path: Path) -> None:
    number = path.stem.split("-")[0]
    text = path.read_text()
    assert text.startswith(f"# {number}: ")
    for heading in ("## Context", "## Decision", "## Consequences", "## Status"):
        assert heading in text


def test_adr_numbers_are_unique() -> None:
    numbers = [path.stem.split("-")[0] for path in tracked("docs/adr/*.md")]
    assert len(numbers) == len(set(numbers))


def test_every_link_between_documents_leads_somewhere() -> None:
    broken = []
    for page in tracked("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            if not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def test_what_an_operator_reads_uses_the_glossarys_words() -> None:
    """Words that the glossary bans, in the text that commands print and in the documents."""
    banned = re.compile(r"\b(cordon|taint(?!ed|s? of|\.)|decommission)\w*", re.IGNORECASE)
    found = []
    for path in [*tracked("provision/cli/**/*.py", "provision/*.py", "README.md", "docs/runbooks/*.md")]:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if banned.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert found == []


def test_the_lock_names_no_package_index() -> None:
    assert "://" not in (ROOT / "requirements.lock").read_text()


def test_the_lock_covers_what_the_project_declares() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    locked = {name.lower() for name in re.findall(r"^([A-Za-z0-9_.-]+)==", lock, re.MULTILINE)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"].values()
    declared = [*project["project"]["dependencies"], *(item for group in groups for item in group)]
    names = {re.split(r"[<>=!~;\[ ]", item)[0].lower() for item in declared}
    assert names - locked == set()
