#!/bin/sh
# Run by mmdebstrap with $1 = the new root: makes it a node, and fetches the kernel that belongs to it
# into $KERNEL_FOLDER from the same package lists. No key and no machine id is left: each install
# makes its own.
set -eu
root=$1
guest=$(dirname "$0")

image=$(APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-cache depends linux-image-cloud-amd64 |
  sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n1)
(cd "$KERNEL_FOLDER" &&
  APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get -q -o APT::Sandbox::User=root download "$image")

chroot "$root" useradd --create-home --uid 1000 --shell /bin/bash --groups sudo ubuntu
chroot "$root" usermod --password '*' ubuntu
echo 'ubuntu ALL=(ALL) NOPASSWD:ALL' >"$root/etc/sudoers.d/ubuntu"
chmod 440 "$root/etc/sudoers.d/ubuntu"

rm -f "$root"/etc/ssh/ssh_host_* "$root/etc/hostname" "$root/etc/resolv.conf"
: >"$root/etc/machine-id"
echo 'nameserver 10.0.2.3' >"$root/etc/resolv.conf"
echo 'LABEL=labroot / ext4 rw,noatime 0 0' >"$root/etc/fstab"
cat >"$root/etc/ssh/sshd_config.d/lab.conf" <<'EOF'
HostKey /etc/ssh/ssh_host_ed25519_key
PasswordAuthentication no
UseDNS no
EOF
cat >"$root/etc/systemd/network/20-lab.network" <<'EOF'
[Match]
Name=en* eth*

[Network]
DHCP=ipv4
LinkLocalAddressing=no
IPv6AcceptRA=no

[DHCPv4]
UseHostname=no
EOF
# The clock's sources are the site's affair; a fresh node asks nobody.
sed -i -e '/^pool /d' -e '/^server /d' "$root/etc/chrony/chrony.conf"

mkdir -p "$root/usr/local/lib/muster-lab" "$root/var/lib/muster-lab"
chmod 700 "$root/var/lib/muster-lab"
cp "$guest/report-boot.sh" "$guest/first-boot.sh" "$root/usr/local/lib/muster-lab/"
chmod 755 "$root"/usr/local/lib/muster-lab/*.sh
cp "$guest"/system/*.service "$root/etc/systemd/system/"
for unit in systemd-networkd.service ssh.service serial-getty@ttyS0.service \
  muster-lab-host-key.service muster-lab-first-boot.service muster-lab-started.service muster-lab-finished.service; do
  chroot "$root" systemctl -q enable "$unit"
done
# What costs seconds of an emulated processor and serves nobody here.
for unit in apt-daily.timer apt-daily-upgrade.timer dev-hugepages.mount dev-mqueue.mount \
  dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer getty@tty1.service \
  man-db.timer sys-kernel-debug.mount sys-kernel-tracing.mount systemd-networkd-wait-online.service \
  systemd-remount-fs.service systemd-sysusers.service systemd-timesyncd.service; do
  ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin "$root/usr/share/man" \
  "$root/usr/share/locale" "$root"/var/cache/debconf/*-old "$root"/var/log/*.log \
  "$root/usr/lib/udev/hwdb.bin" "$root"/usr/lib/python3*/test "$root"/usr/lib/python3*/pydoc_data
