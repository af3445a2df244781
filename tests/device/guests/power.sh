# btrfs on a host-managed disk of a machine that loses power again and again. STEP counts from 1 to LAST; /mnt/shared/durable has the
# checksums of the files that were synced.
d=/dev/sda
wait_for /sys/block/sda
load btrfs
if [ $STEP = 1 ]; then
    mkfs.btrfs -q -f $d >said
    mount $d /mnt/fs
else
    step mount what was left
    mount $d /mnt/fs
    (cd /mnt/fs && sha256sum --quiet -c /mnt/shared/durable)
    btrfs scrub start -B /mnt/fs 2>/dev/null | grep -q 'no errors found'
fi
if [ $STEP = $LAST ]; then
    umount /mnt/fs
    btrfs check $d >said 2>&1
    exit
fi
step write until the power fails
# What nobody syncs, beside what is noted when it is durable.
(while :; do dd if=/dev/urandom of=/mnt/fs/dirty.$((RANDOM % 4)) bs=64k count=8 status=none; done) &
for n in $(seq 1000); do
    dd if=/dev/urandom of=/mnt/fs/$STEP.$n bs=64k count=4 conv=fsync status=none
    (cd /mnt/fs && sha256sum $STEP.$n) >>/mnt/shared/durable
done
