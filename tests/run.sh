#!/bin/sh
# Everything that must hold before a change is kept; CI runs this and nothing else.
set -eu
cd "$(dirname -- "$0")/.."
fast=''
[ "${1:-}" = --fast ] && { fast=1; shift; }
step() { printf '== %s\n' "$*" >&2; "$@"; }

if [ $# -gt 0 ]; then
  exec pytest "$@"
fi
step ruff format --check .
step ruff check .
step mypy
step lint-imports
step codespell
step yamllint --strict playbooks
step ansible-lint --offline --profile production playbooks
# The order is shuffled, and the same in every run: a red run is repeated by running it again.
seed="${MUSTER_TEST_SEED:-20261130}"
marks='not real'
[ -z "$fast" ] || marks='not lab and not qemu and not real'
if ! step pytest -q --randomly-seed="$seed" -m "$marks" --durations=10; then
  # What failed among the others is run once more by itself; only what passes then was the company's fault.
  printf '== the failed tests again, by themselves\n' >&2
  step pytest -q -p no:randomly -m "$marks" --last-failed --last-failed-no-failures none
fi
