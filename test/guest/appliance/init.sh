#!/test/bin/busybox sh
# PID 1 of the guest: what a Nitro host gives an enclave and its parent, and the two kept apart. The parent's side has a
# network and an /etc/hosts of its own, so that nothing but vsock leads from one to the other. It starts the enclave
# (programs/processes.ts) from the image's ramdisks, which lie under / as they do on Nitro.
export PATH=/test/bin:/bin
mkdir -p /proc /sys /dev /tmp /run
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
while read -r module; do
  insmod "/test/modules/$module" || echo "insmod $module failed"
done < /test/modules/order
ip link set lo up
ulimit -n 65536
unshare -n -m sh -c '
  ip link set lo up
  mount --bind /test/hosts /etc/hosts
  exec /usr/bin/node /test/programs/bundle/world.js
'
echo "GUEST_DONE $?"
reboot -f
