#!/bin/sh
# What udhcpc runs: takes the lease that was given.
case $1 in
  bound | renew)
    ifconfig "$interface" "$ip" netmask "$subnet"
    for gateway in $router; do route add default gw "$gateway" 2>/dev/null; done
    ;;
esac
exit 0
