#!/bin/sh
# Brings up real Kraken on lab nodes through Muster's roles: origin, tracker, build-index, proxy and a testfs on one,
# agents on three others. Pushes an image, pulls it by digest, stops the origin, and pulls it on the third from peers.
#
#     tests/real/kraken.sh FOLDER
#
# FOLDER holds kraken-origin, kraken-tracker, kraken-build-index, kraken-proxy, kraken-agent and kraken-testfs for Linux
# on this machine's processor. CI has none of them and does not run this. Needs root, as the lab does.
set -eu
[ $# -eq 1 ] || { echo "usage: tests/real/kraken.sh FOLDER" >&2; exit 5; }
folder=$(cd "$1" && pwd)
for name in origin tracker build-index proxy agent testfs; do
  [ -x "$folder/kraken-$name" ] || { echo "error: $folder/kraken-$name is no program" >&2; exit 5; }
done
cd "$(dirname -- "$0")/../.."
MUSTER_KRAKEN_PROGRAMS=$folder exec ./muster env -- pytest -m real -p no:randomly -v tests/roles/test_kraken_real.py
