#!/bin/sh
# PID 1 of the environment that a node boots from the network: does what MAAS ordered, then ends.
# Orders lie in /run/lab/order, answers go to /run/lab-out; all that is said goes to the console too.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
order=/run/lab/order
out=/run/lab-out
say() { printf '[%s] %s\n' "$(cut -d' ' -f1 /proc/uptime)" "$*"; }

commission() {
  for script in /usr/lib/lab/commissioning/*; do
    name=${script##*/}
    say "cloud-init: running $name"
    timeout 60 "$script" > "$out/$name.stdout" 2> "$out/$name.stderr" < /dev/null
    status=$?
    echo "$status" > "$out/$name.status"
    say "cloud-init: $name finished with exit status $status"
  done
}

say "cloud-init: environment from the network is up, order: $1"
case $1 in
  commission) commission ;;
  install)
    /usr/lib/lab/install "$order" /target > "$out/install.log" 2>&1
    echo $? > "$out/install.status"
    sed 's/^/curtin: /' "$out/install.log"
    ;;
  rescue)
    mkdir -p /run/sshd
    ssh-keygen -q -A
    install -d -m 700 -o ubuntu -g ubuntu /home/ubuntu/.ssh
    install -m 600 -o ubuntu -g ubuntu "$order/ssh_keys" /home/ubuntu/.ssh/authorized_keys
    say "rescue environment: sshd answers, nothing else runs"
    exec /usr/sbin/sshd -D
    ;;
esac
say "cloud-init: done"
