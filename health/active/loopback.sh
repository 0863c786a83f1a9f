# Write from an adapter to itself with perftest, which needs a server and a client. $1 is the device.
device=$1
command -v ib_write_bw > /dev/null || exit 127
ib_write_bw -d "$device" -F --report_gbits -D 3 > /dev/null 2>&1 &
server=$!
code=1
for attempt in 1 2 3 4 5 6 7 8 9 10; do
  sleep 0.5
  if ib_write_bw -d "$device" -F --report_gbits -D 3 localhost; then
    code=0
    break
  fi
done
kill "$server" 2> /dev/null
exit "$code"
