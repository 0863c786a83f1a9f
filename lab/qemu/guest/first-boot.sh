#!/bin/sh
# Once after an install: takes the whole disk, and runs what the operator gave as user data.
set -u
ours=/var/lib/muster-lab
resize2fs "$(findfs LABEL=labroot)" || exit 1
if [ -s "$ours/user-data" ] && [ "$(head -c2 "$ours/user-data")" = '#!' ]; then
  chmod 700 "$ours/user-data"
  "$ours/user-data" || exit 1
fi
touch "$ours/first-boot-done"
