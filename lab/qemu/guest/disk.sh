#!/bin/sh
# PID 1 of the installed disk's initrd: finds the root file system and hands over to it.
export PATH=/bin:/sbin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
for module in virtio_pci virtio_blk; do modprobe "$module" 2>/dev/null; done
waited=0
until root=$(findfs LABEL=labroot 2>/dev/null) && [ -n "$root" ]; do
  if [ "$waited" -ge 100 ]; then
    echo "ALERT!  LABEL=labroot does not exist.  Dropping to a shell!"
    export PS1='(initramfs) '
    exec setsid cttyhack sh
  fi
  waited=$((waited + 1))
  usleep 100000
done
mount -t ext4 -o rw,noatime "$root" /mnt
mount --move /dev /mnt/dev
umount /sys /proc
exec switch_root /mnt /sbin/init
