#!/bin/sh
# PID 1 of the netboot environment: asks the boot server what is wanted of this node and does it.
# Runs on busybox alone. Everything said goes to the console, which is the serial port.
export PATH=/bin:/sbin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev

disk=/dev/vda
system=/mnt
log=/tmp/install.log
results=/tmp/results
next=''

say() {
  line=$(printf 'muster-lab [%s] %s' "$(cut -d' ' -f1 /proc/uptime)" "$*")
  printf '%s\n' "$line"
  printf '%s\n' "$line" >>"$log"
}

json_text() { printf '%s' "$1" | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' | tr -d '\000-\037'; }

# report_text PHASE EVENT MESSAGE: what is posted, with the results gathered so far.
report_text() {
  printf '{"token":"%s","phase":"%s","event":"%s"' "$(json_text "$token")" "$1" "$2"
  printf ',"message":"%s","address":"%s"' "$(json_text "$3")" "$(json_text "$address")"
  printf ',"results":[%s]}' "$(cat "$results")"
}

# report PHASE EVENT MESSAGE: one POST; a boot server that is away for a moment is asked again.
# Leaves in $next what MAAS wants done now.
report() {
  report_text "$@" >/tmp/report.json
  : >"$results"
  next=''
  attempt=1
  until wget -q -O /tmp/answer --post-file=/tmp/report.json "$server/boot/$mac/report"; do
    [ "$attempt" -ge 10 ] && { say "report $1 $2 was not accepted"; return 1; }
    attempt=$((attempt + 1))
    sleep 1
  done
  next=$(sed -n 's/.*"next": *"\([a-z]*\)".*/\1/p' /tmp/answer)
}

# add_result NAME STATUS STDOUT STDERR, the last two as files.
add_result() {
  [ -s "$results" ] && printf ',' >>"$results"
  printf '{"name":"%s","exit_status":%d,"stdout":"%s","stderr":"%s"}' "$1" "$2" \
    "$(base64 -w0 "$3")" "$(base64 -w0 "$4")" >>"$results"
}

# A node that cannot go on stays up with a shell, so that the console shows why.
stop_with_shell() {
  say "$1"
  say "starting a shell on the console"
  exec setsid cttyhack sh
}

# do_next DEFAULT: what MAAS said last, or the default where it said nothing.
do_next() {
  case ${next:-$1} in
    poweroff)
      say "powering off"
      poweroff -f
      ;;
    reboot)
      say "rebooting"
      reboot -f
      ;;
    *) stop_with_shell "staying up" ;;
  esac
  # The kernel takes a moment; PID 1 must not end before it.
  sleep 3600
}

fail_install() {
  say "installation: FAILED: $*"
  add_result "$log" 1 "$log" /dev/null
  report installation failed "$*"
  do_next stay
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

commission() {
  say "commissioning: started"
  report commissioning started "collecting hardware"
  for script in /commissioning/*; do
    name=${script##*/}
    sh "$script" >/tmp/stdout 2>/tmp/stderr
    status=$?
    say "commissioning: $name exit status $status"
    add_result "$name" "$status" /tmp/stdout /tmp/stderr
  done
  report commissioning finished "hardware collected" || stop_with_shell "the results reached nobody"
  say "commissioning: finished"
  [ "$next" = testing ] && run_tests
  do_next poweroff
}

# None of MAAS's test programs is here; MAAS takes those that nobody reports by name for passed.
run_tests() {
  say "testing: started"
  report testing started "no test program is here"
  report testing finished "no test program is here" || stop_with_shell "the tests' end reached nobody"
  say "testing: finished"
}

write_disk() {
  [ -b "$disk" ] || fail_install "no disk $disk"
  say "installation: writing $image to $disk"
  # The pipe's own status is dd's; a transfer that broke is seen by what arrived. Images are whole MiB.
  wget -q -O - "$server/image/$mac" | dd of="$disk" bs=1M iflag=fullblock oflag=direct 2>/tmp/dd
  grep -qx "$((image_bytes / 1048576))+0 records out" /tmp/dd ||
    fail_install "the transfer broke: $(tr '\n' ' ' </tmp/dd), $image_bytes bytes were expected"
  blockdev --rereadpt "$disk"
  say "installation: wrote $image_bytes bytes"
  report installation progress "cmd-install/stage-extract: OS image written"
}

personalise() {
  mount -t ext4 "${disk}1" "$system" || fail_install "the written disk does not mount"
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
  report_text boot started "the installed system starts" >"$ours/boot-started.json"
  report_text boot finished "sshd runs" >"$ours/boot-finished.json"
  chmod 600 "$ours"/*.json
  [ -z "$user_data" ] || printf '%s' "$user_data" | base64 -d >"$ours/user-data" ||
    say "installation: the user data is not base64 and left out"
  umount "$system" || fail_install "the written disk stays busy"
  say "installation: this node is now $hostname"
}

install() {
  say "installation: started for $hostname"
  report installation started "installing $image"
  [ -z "$ephemeral" ] || fail_install "no image here runs from memory"
  write_disk
  personalise
  sync
  say "installation: finished"
  add_result "$log" 0 "$log" /dev/null
  report installation finished "installed" || stop_with_shell "installed, yet MAAS does not know"
  do_next reboot
}

: >"$results"
say "netboot environment started"
start_network
find_boot_server
read_order
say "order for $mac: $intent"
case $intent in
  install) install ;;
  commission) commission ;;
  enlist)
    report enlistment finished "$(tr 'A-Z' 'a-z' </sys/class/dmi/id/product_serial)"
    do_next poweroff
    ;;
  test)
    run_tests
    do_next poweroff
    ;;
  rescue)
    report rescue started "a shell on the console"
    do_next stay
    ;;
  *) stop_with_shell "nothing that this environment can do" ;;
esac
