#!/bin/sh
# PID 1 of the netboot environment: asks the boot server what is wanted of this node and does it.
# Runs on busybox alone. Everything said goes to the console, which is the serial port.
export PATH=/bin:/sbin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev

disk=/dev/vda
system=/mnt
results=/tmp/results

say() { printf 'muster-lab [%s] %s\n' "$(cut -d' ' -f1 /proc/uptime)" "$*"; }

json_text() { printf '%s' "$1" | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' | tr -d '\000-\037'; }

# report_text PHASE EVENT MESSAGE: what is posted, with the results gathered so far.
report_text() {
  printf '{"token":"%s","phase":"%s","event":"%s"' "$(json_text "$token")" "$1" "$2"
  printf ',"message":"%s","address":"%s"' "$(json_text "$3")" "$(json_text "$address")"
  printf ',"results":[%s]}' "$(cat "$results")"
}

# report PHASE EVENT MESSAGE: one POST; a boot server that is away for a moment is asked again.
report() {
  report_text "$@" >/tmp/report.json
  : >"$results"
  attempt=1
  until wget -q -O /dev/null --post-file=/tmp/report.json "$server/boot/$mac/report"; do
    [ "$attempt" -ge 10 ] && { say "report $1 $2 was not accepted"; return 1; }
    attempt=$((attempt + 1))
    sleep 1
  done
}

# A node that cannot go on stays up with a shell, so that the console shows why.
stop_with_shell() {
  say "$1"
  say "starting a shell on the console"
  exec setsid cttyhack sh
}

fail() {
  phase=$1
  shift
  say "FAILED: $*"
  report "$phase" failed "$*"
  stop_with_shell "nothing more is tried"
}

start_network() {
  for module in virtio_pci virtio_net virtio_blk virtio_rng af_packet; do modprobe "$module" 2>/dev/null; done
  waited=0
  until [ -e /sys/class/net/eth0 ]; do
    [ "$waited" -ge 100 ] && stop_with_shell "FAILED: no network card"
    waited=$((waited + 1))
    usleep 100000
  done
  ifconfig lo up
  ifconfig eth0 up
  mac=$(cat /sys/class/net/eth0/address)
  udhcpc -i eth0 -n -q -t 10 -s /bin/dhcp-bound || stop_with_shell "FAILED: no DHCP lease on eth0 $mac"
}

# The firmware's OEM strings name the boot server, as a site's DHCP names its rack controller.
find_boot_server() {
  server=$(tr '\000' '\n' </sys/firmware/dmi/entries/11-0/raw | sed -n 's/.*boot-server=//p')
  [ -n "$server" ] || stop_with_shell "FAILED: the firmware names no boot server"
}

read_order() {
  attempt=1
  until wget -q -O /tmp/order "$server/order/$mac"; do
    [ "$attempt" -ge 10 ] && stop_with_shell "FAILED: $server gives no order for $mac"
    attempt=$((attempt + 1))
    sleep 1
  done
  . /tmp/order
}

collect() {
  phase=$1
  say "$phase: collecting"
  report "$phase" started "collecting hardware"
  separator=''
  for script in /commissioning/*; do
    name=${script##*/}
    sh "$script" >/tmp/stdout 2>/tmp/stderr
    status=$?
    say "$phase: $name exit status $status"
    printf '%s{"name":"%s","exit_status":%d,"stdout":"%s","stderr":"%s"}' "$separator" "$name" "$status" \
      "$(base64 -w0 /tmp/stdout)" "$(base64 -w0 /tmp/stderr)" >>"$results"
    separator=','
  done
  report "$phase" finished "hardware collected" || stop_with_shell "results stay in $results"
  say "$phase: finished, powering off"
  poweroff -f
}

write_disk() {
  [ -b "$disk" ] || fail installation "no disk $disk"
  say "installation: writing $image to $disk"
  # The pipe's own status is dd's; a transfer that broke is seen by what arrived. Images are whole MiB.
  wget -q -O - "$server/image/$mac" | dd of="$disk" bs=1M iflag=fullblock oflag=direct 2>/tmp/dd
  grep -qx "$((image_bytes / 1048576))+0 records out" /tmp/dd ||
    fail installation "the transfer broke: $(tr '\n' ' ' </tmp/dd), $image_bytes bytes were expected"
  blockdev --rereadpt "$disk"
  say "installation: wrote $image_bytes bytes"
  report installation progress "OS image written"
}

personalise() {
  mount -t ext4 "${disk}1" "$system" || fail installation "the written disk does not mount"
  printf '%s\n' "$hostname" >"$system/etc/hostname"
  printf '127.0.0.1 localhost\n127.0.1.1 %s\n' "$hostname" >"$system/etc/hosts"
  tr -d '-' </proc/sys/kernel/random/uuid >"$system/etc/machine-id"
  keys="$system/home/ubuntu/.ssh"
  mkdir -p -m 700 "$keys"
  printf '%s\n' "$ssh_keys" >"$keys/authorized_keys"
  chmod 600 "$keys/authorized_keys"
  chown -R 1000:1000 "$keys"
  ours="$system/var/lib/muster-lab"
  mkdir -p -m 700 "$ours"
  report_text boot finished "sshd runs" >"$ours/boot-report.json"
  [ -z "$user_data" ] || printf '%s' "$user_data" >"$ours/user-data"
  umount "$system" || fail installation "the written disk stays busy"
  say "installation: this node is now $hostname"
}

install() {
  say "installation: started for $hostname"
  report installation started "installing $image"
  write_disk
  personalise
  sync
  report installation finished "installed" || stop_with_shell "installed, yet MAAS does not know"
  say "installation: finished, rebooting"
  reboot -f
}

: >"$results"
say "netboot environment started"
start_network
find_boot_server
read_order
say "order for $mac: $intent"
case $intent in
  install) install ;;
  commission) collect commissioning ;;
  enlist) collect enlistment ;;
  rescue)
    report rescue started "shell on the console"
    stop_with_shell "rescue mode"
    ;;
  *)
    say "nothing to do, powering off"
    poweroff -f
    ;;
esac
