# btrfs on a host-managed disk: fill, delete, balance, scrub; and the server killed in the middle of a balance and of writing.
d=/dev/sda
wait_for /sys/block/sda
load btrfs
# Nothing is fsynced before a full balance: that of btrfs of Linux 6.12 then warns of a block group "removed before metadata
# write out", and a later commit writes a zone from its start that was not reset. The kernel stops that write itself, and btrfs
# gives up: without a kill, and on null_blk as well.

# After an unmount: mounts it, and what was there is there, read from the disk, by the sums of a file; btrfs met no fault.
whole() {
    btrfs check $d >said 2>&1
    mount -o noatime $d /mnt/fs
    (cd /mnt/fs && sha256sum --quiet -c /mnt/tmp/$1)
    btrfs scrub start -B /mnt/fs 2>/dev/null | grep -q 'no errors found'
    refused grep -E 'BTRFS:? error' <(dmesg)
}

step make and fill
mkfs.btrfs -q -f $d >said
mount -o noatime $d /mnt/fs
dd if=/dev/urandom of=/mnt/fs/large bs=1M count=12 status=none
cp -r /etc/[b-l]* /mnt/fs/
sync
sums() { (cd /mnt/fs && find . -type f -print0 | sort -z | xargs -0 sha256sum) >$1; }
sums small
same "$(($(wc -l <small) > 50))" 1

step delete and balance
dd if=/dev/urandom of=/mnt/fs/filler bs=1M count=24 status=none
rm /mnt/fs/filler
btrfs -q balance start --full-balance /mnt/fs
umount /mnt/fs
step scrub
whole small

step a kill in the middle of a balance
dd if=/dev/urandom of=/mnt/fs/filler bs=1M count=48 status=none
sync
sums large
btrfs -q balance start --full-balance /mnt/fs &
# Its status ends with 1 while it runs.
running() { { btrfs balance status /mnt/fs || true; } | grep 'is running' >said; }
until running; do kill -0 $!; done
ask kill
wait $!
umount /mnt/fs
whole large
rm /mnt/fs/filler
umount /mnt/fs
whole small
umount /mnt/fs

step a kill in the middle of writing
mkfs.btrfs -q -f $d >said
mount $d /mnt/fs
# Each file is durable before its sum is noted.
(
    for n in $(seq 1000); do
        dd if=/dev/urandom of=/mnt/fs/new.$n bs=64k count=4 conv=fsync status=none
        (cd /mnt/fs && sha256sum new.$n) >>/mnt/tmp/durable
        [ ! -e /mnt/tmp/enough ] || break
    done
) &
written() { until [ -e durable ] && [ "$(wc -l <durable)" -ge $1 ]; do kill -0 $!; sleep 0.1; done; }
written 3
ask kill
written 6
ask kill
touch enough
wait $!
umount /mnt/fs
ask kill
whole durable
umount /mnt/fs
