# btrfs on a host-managed disk: fill, delete, balance, scrub; and the server killed in the middle of a balance and of writing.
d=/dev/sda
wait_for /sys/block/sda
load btrfs
step make and fill
mkfs.btrfs -q -f $d >said
mount $d /mnt/fs
dd if=/dev/urandom of=/mnt/fs/large bs=1M count=12 status=none
cp -r /etc/[b-l]* /mnt/fs/
sync
(cd /mnt/fs && find . -type f -print0 | sort -z | xargs -0 sha256sum) >sums
same "$(($(wc -l <sums) > 50))" 1

step delete and balance
dd if=/dev/urandom of=/mnt/fs/filler bs=1M count=24 status=none
rm /mnt/fs/filler
btrfs -q balance start --full-balance /mnt/fs
step scrub
scrub() { btrfs scrub start -B /mnt/fs 2>/dev/null | grep -q 'no errors found'; }
scrub

step a kill in the middle of a balance
dd if=/dev/urandom of=/mnt/fs/filler bs=1M count=48 conv=fsync status=none
btrfs -q balance start --full-balance /mnt/fs &
# Its status ends with 1 while it runs.
running() { { btrfs balance status /mnt/fs || true; } | grep 'is running' >said; }
until running; do kill -0 $!; done
ask kill
wait $!
rm /mnt/fs/filler
(cd /mnt/fs && sha256sum --quiet -c /mnt/tmp/sums)
scrub

umount /mnt/fs
btrfs check $d >said 2>&1

step a kill in the middle of writing
# A new file system: btrfs of Linux 6.12 gives up by itself when it is written after a full balance of so small a disk,
# without a kill and on null_blk as well (a write at another place than its zone's write pointer).
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
mount $d /mnt/fs
(cd /mnt/fs && sha256sum --quiet -c /mnt/tmp/durable)
scrub
umount /mnt/fs
btrfs check $d >said 2>&1
