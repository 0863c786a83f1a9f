#!/bin/sh
# Everything that must hold before a change is kept; CI runs this and nothing else.
set -eu
cd "$(dirname -- "$0")/.."
marks='not real and not slow'
case "${1:-}" in
  --fast) marks='not lab and not qemu and not real'; shift ;;
  --all) marks='not real'; shift ;;
esac
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
# Three at a time, a file in one piece: most of the lab's tests wait for a boot, and files share a lab.
seed="${MUSTER_TEST_SEED:-20261130}"
status=0
step pytest -q -n "${MUSTER_TEST_WORKERS:-3}" --randomly-seed="$seed" -m "$marks" --durations=10 --cache-clear || status=$?
# 1: tests failed, and which is written down. Of anything else, such as tests not found, a second run says no more.
if [ "$status" -eq 1 ] && grep -q '::' .pytest_cache/v/cache/lastfailed 2>/dev/null; then
  # Once more with nothing beside it, in the open: what fails again is a fault, what passes now was crowded out.
  printf '== the failed tests again, each by itself\n' >&2
  status=0
  step pytest -q -p no:randomly -m "$marks" --last-failed --last-failed-no-failures none || status=$?
fi
exit "$status"
