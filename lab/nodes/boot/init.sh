#!/bin/sh
# First program of a node: runs in fresh PID, mount, network, UTS, IPC, cgroup and time namespaces,
# builds the node's root from its disk (or from memory), and becomes its init.
# Settings come as LAB_ variables. Standard input and output are the serial line; standard error
# speaks with the lab: "ready" out, a line in when the network cable is plugged, "up" out; all else
# is a complaint.
set -eu
echo ready >&2
root=$LAB_FOLDER/root
mkdir -p "$root"

# The overlays keep what is below them mounted, and the kernel frees the loop device when the node dies.
overlay() { mkdir -p "$1/upper" "$1/work" "$2" && mount -t overlay overlay -o "lowerdir=$LAB_LOWER,upperdir=$1/upper,workdir=$1/work" "$2"; }
mkdir -p "$LAB_FOLDER/disk" "$LAB_FOLDER/memory"
[ -z "${LAB_DISK:-}" ] || mount -o loop,noatime,nobarrier "$LAB_DISK" "$LAB_FOLDER/disk"
if [ -n "${LAB_LIVE:-}" ]; then
  mount -t tmpfs -o mode=755,size=512m memory "$LAB_FOLDER/memory"
  overlay "$LAB_FOLDER/memory" "$root"
  [ -z "${LAB_DISK:-}" ] || overlay "$LAB_FOLDER/disk" "$root/target"
else
  overlay "$LAB_FOLDER/disk" "$root"
fi

mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs "$root/sys"
mount -t tmpfs -o mode=755,nosuid,nodev,size=64m run "$root/run"
mount -t tmpfs -o mode=1777,nosuid,nodev,size=256m tmp "$root/tmp"
mount -t tmpfs -o mode=755,nosuid,size=1m dev "$root/dev"
mkdir "$root/dev/pts" "$root/dev/shm" "$root/run/lab"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777,nosuid,nodev shm "$root/dev/shm"
node() { mknod -m 666 "$root/dev/$1" c "$2" "$3"; }
node null 1 3; node zero 1 5; node full 1 7; node random 1 8; node urandom 1 9; node tty 5 0
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ln -s /proc/self/fd/0 "$root/dev/stdin"
ln -s /proc/self/fd/1 "$root/dev/stdout"
ln -s /proc/self/fd/2 "$root/dev/stderr"
: > "$root/dev/console"
mount --bind "$(readlink /proc/self/fd/0)" "$root/dev/console"

# What the lab tells the node about itself: hardware facts and faults, live.
mount --bind "$LAB_SHARE" "$root/run/lab"
mount -o remount,bind,ro "$root/run/lab"
[ -z "${LAB_OUT:-}" ] || { mkdir "$root/run/lab-out"; mount --bind "$LAB_OUT" "$root/run/lab-out"; }
mount --bind "$LAB_SHARE/cmdline" "$root/proc/cmdline"
if [ -z "${LAB_LIVE:-}" ]; then
  mount --bind "$LAB_SHARE/pci" "$root/sys/bus/pci/devices"
  mount -o remount,bind,ro "$root/sys/bus/pci/devices"
  mount --bind "$LAB_SHARE/swaps" "$root/proc/swaps"
fi
: > "$root/dev/kmsg"
mount --bind "$LAB_SHARE/kmsg" "$root/dev/kmsg"

# The kernel's settings belong to the machine beneath. All but the network's are replaced by notes
# that the node may change and that act on nothing.
mkdir "$root/run/sysctl" "$root/run/sysctl/upper" "$root/run/sysctl/work" "$root/run/sysctl/net"
mount --bind "$root/proc/sys/net" "$root/run/sysctl/net"
cat /proc/sys/kernel/random/uuid > "$root/run/sysctl/boot_id"
: > "$root/run/sysctl/uuid"
mount --bind "$root/proc/sys/kernel/random/uuid" "$root/run/sysctl/uuid"
mount -t overlay overlay -o "lowerdir=$LAB_SYSCTL,upperdir=$root/run/sysctl/upper,workdir=$root/run/sysctl/work" "$root/proc/sys"
mount --move "$root/run/sysctl/net" "$root/proc/sys/net"
mount --move "$root/run/sysctl/uuid" "$root/proc/sys/kernel/random/uuid"
cp "$root/run/sysctl/boot_id" "$root/proc/sys/kernel/random/boot_id"
for file in sysrq-trigger kcore kallsyms; do
  [ -e "$root/proc/$file" ] && mount --bind "$root/dev/null" "$root/proc/$file"
done
mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 "$root/sys/fs/cgroup"

hostname "$LAB_NAME"
for fault in ${LAB_FAULTS:-}; do
  chroot "$root" /usr/lib/lab/fault "${fault%%=*}" "${fault#*=}"
done
read -r plugged <&2
ip link set lo up
if [ "$plugged" = plugged ]; then
  ip link set eth0 address "$LAB_MAC"
  ip addr add "$LAB_ADDRESS/16" dev eth0
  ip link set eth0 up
fi

echo up >&2
cd "$root"
pivot_root . .
umount -l .
cd /
# Not the machine's clock, modules, raw devices or kernel log: they are not the node's.
# shellcheck disable=SC2086  # the command is words on purpose
exec env -i container=lab TERM=vt220 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  setpriv --bounding-set=-sys_time,-sys_module,-sys_rawio,-syslog,-mac_admin,-mac_override,-audit_control \
  $LAB_INIT 2>&1
