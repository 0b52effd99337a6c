#!/test/bin/busybox sh
# PID 1 of the guest that measures the parent proxy.
export PATH=/test/bin:/bin HOME=/tmp NO_COLOR=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
while read -r module; do
  insmod "/test/modules/$module" || echo "insmod $module failed"
done < /test/modules/order
ip link set lo up
ulimit -n 16384
node /test/programs/bundle/measure.js
echo "GUEST_DONE $?"
reboot -f
