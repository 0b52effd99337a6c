#!/test/bin/busybox sh
# The image's init again and again, each time as PID 1 of a namespace, where a reboot ends that namespace and nothing
# else. Between `case NAME` and `case ended` is what it says; what is judged is judged outside (suite.ts).
export PATH=/test/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
while read -r module; do
  insmod "/test/modules/$module"
done < /test/modules/order
/test/heartbeats &

# NAME COMMANDS: the commands change what init finds, in its own mounts only.
try() {
  echo "case $1"
  unshare -m -p -f sh -c "
    modules() { echo \"\$1\" > /tmp/modules; mount --bind /tmp/modules /etc/strongroom/modules; }
    cmdline() { echo \"console=ttyS0 \$1\" > /tmp/cmdline; mount --bind /tmp/cmdline /proc/cmdline; }
    $2
    exec /init"
  echo "case ended, modules_disabled $(cat /proc/sys/kernel/modules_disabled)"
}

# Before any that gets past the modules: it forbids them for good.
try missing-module 'modules /lib/modules/strongroom/nowhere.ko'
try bad-module 'echo no module > /tmp/bad.ko; modules /tmp/bad.ko'
try long-list 'modules "$(head -c 5000 /dev/zero | tr "\0" a)"'

mount -t tmpfs none /etc/strongroom
touch /etc/strongroom/modules
try odd-cid 'cmdline strongroom.parent_cid=0x1'
try empty-cid 'cmdline strongroom.parent_cid='
try any-cid 'cmdline strongroom.parent_cid=4294967295'
try two-cids 'cmdline "strongroom.parent_cid=1 strongroom.parent_cid=1"'
try odd-evidence 'cmdline "strongroom.parent_cid=1 strongroom.evidence=signed"'
try unsigned-evidence 'cmdline "strongroom.parent_cid=1 strongroom.evidence=unsigned"'

kernel='mount -t tmpfs none /proc/sys/kernel; echo 0 > /proc/sys/kernel/io_uring_disabled'
try io-uring "$kernel"
try io-uring-refused "$kernel; mount -o remount,ro /proc/sys/kernel"
try accept-queue-refused 'mount -t tmpfs none /proc/sys/net/core; echo 128 > /proc/sys/net/core/somaxconn
  mount -o remount,ro /proc/sys/net/core'

try killed 'echo kill 9 > /tmp/end; mount --bind /tmp/end /test/end'
try missing-node 'mount -t tmpfs none /usr/bin'
echo "case not-first"
/init
echo "case ended, status $?"
reboot -f
