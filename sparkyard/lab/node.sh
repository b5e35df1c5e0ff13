#!/bin/sh
# The first process of a lab node, already in the node's network, mount and uts namespaces.
# Arguments: name, the node's folder, the lab's folder. Becomes a sleeper that keeps the namespaces alive.
set -eu
name=$1 base=$2 lab=$3

hostname "$name"
mount --make-rprivate /
# Copies of other namespaces' mounts would keep those alive after their lab is gone.
for netns in /run/netns/*; do umount -l "$netns" 2>/dev/null || :; done

mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/sshd /run/lock /run/sysfs /run/dev
mount -t sysfs sysfs /run/sysfs            # shows this node's interfaces; /sys itself stays, for its cgroup mounts

# A /dev of its own: the made-up HCA's device must not appear on the machine.
mount -t tmpfs -o mode=755 tmpfs /run/dev
find /dev -xdev -mindepth 1 -maxdepth 1 ! -type d ! -type s -exec cp -a -t /run/dev {} + || [ -c /run/dev/null ]  # one may go meanwhile
for folder in net mapper dri; do [ ! -d "/dev/$folder" ] || cp -a "/dev/$folder" /run/dev/; done
mkdir -p /run/dev/pts /run/dev/shm /run/dev/mqueue /run/dev/infiniband
mount --rbind /dev/pts /run/dev/pts
mount -t tmpfs -o mode=1777 shm /run/dev/shm
mknod /run/dev/infiniband/uverbs0 c 1 3
mknod /run/dev/infiniband/uverbs1 c 1 3
mknod /run/dev/infiniband/rdma_cm c 1 3
# A Spark's graphics card, by the path that it has there.
mkdir -p /run/dev/dri/by-path
[ -e /run/dev/dri/by-path/pci-000f:01:00.0-card ] || mknod /run/dev/dri/by-path/pci-000f:01:00.0-card c 1 3
mount --rbind /run/dev /dev

mount --bind "$base/self" "$lab/self"
for file in passwd shadow hosts hostname; do [ ! -e "/etc/$file" ] || mount --bind "$base/etc/$file" "/etc/$file"; done
mount --bind "$base/sysclass" /sys/class   # /sys/class/infiniband itself cannot be created
mount --bind "$base/meminfo" /proc/meminfo
mount --bind "$base/cmdline" /proc/cmdline

cp "$base/self/lab-marker" /run/sparkyard-lab
echo "$$" >"$base/pid.new"
mv "$base/pid.new" "$base/pid"
exec sleep infinity
