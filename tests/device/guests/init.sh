#!/bin/busybox sh
# What the kernel starts first: mounts the host's root, and runs the test's script there. MODULES is replaced (guest.py).
b=/bin/busybox
$b echo "guest: started"
for module in MODULES; do $b insmod /$module; done
shared=trans=virtio,version=9p2000.L,msize=262144
$b mount -t 9p -o $shared,ro,cache=loose root /host
$b mount -t devtmpfs dev /host/dev
$b mount -t proc proc /host/proc
$b ln -s /proc/self/fd /host/dev/fd
$b mount -t sysfs sys /host/sys
for place in run mnt; do $b mount -t tmpfs $place /host/$place; done
$b mkdir /host/mnt/shared /host/mnt/kernel /host/mnt/tmp /host/mnt/fs
$b mount -t 9p -o $shared,cache=none shared /host/mnt/shared
$b mount -t 9p -o $shared,ro,cache=loose kernel /host/mnt/kernel
$b chroot /host /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/mnt/tmp TMPDIR=/mnt/tmp /bin/bash /mnt/shared/script
status=$?
# What the kernel said of it.
[ $status = 0 ] || $b dmesg | $b tail -n 40
echo "guest: status $status"
$b poweroff -f
