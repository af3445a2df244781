# zonefs, f2fs and btrfs on zones that end before the next one begins; the server is killed in between. A zone holds CAPACITY sectors of SECTORS;
# RANDOM_ZONES are conventional. An empty zonefs is in /mnt/shared.
d=/dev/sda
wait_for /sys/block/sda

step zonefs
load zonefs
dd if=/mnt/shared/zonefs of=$d bs=4k oflag=direct status=none
mount -t zonefs $d /mnt/fs
blocks=$((CAPACITY * 512 / 65536))
zone() { blkzone report -o $(((RANDOM_ZONES + $1) * SECTORS)) -c 1 $d; }
append() { dd if=/dev/urandom of=/mnt/fs/seq/$1 bs=64k count=$2 oflag=direct,append conv=notrunc status=none; }
# A file is as long as what a zone holds, and no longer.
append 0 $blocks
same "$(stat -c %s /mnt/fs/seq/0)" $((CAPACITY * 512))
refused append 0 1 2>said
zone 0 | grep -q "cap $(printf '0x%06x' $CAPACITY).*zcond:14"
append 1 3
sha256sum /mnt/fs/seq/[01] >sums
ask kill
sha256sum --quiet -c sums
umount /mnt/fs
mount -t zonefs $d /mnt/fs
sha256sum --quiet -c sums
same "$(stat -c %s /mnt/fs/seq/1)" 196608
# The last zone, behind which the disk ends.
last=$(($(ls /mnt/fs/seq | wc -l) - 1))
append $last $blocks
same "$(stat -c %s /mnt/fs/seq/$last)" $((CAPACITY * 512))
truncate -s 0 /mnt/fs/seq/0
zone 0 | grep -q 'zcond: 1'
# To its whole length without a byte written: the zone is finished.
truncate -s $((CAPACITY * 512)) /mnt/fs/seq/0
zone 0 | grep -q 'zcond:14'
umount /mnt/fs

step f2fs
load f2fs
blkzone reset $d
mkfs.f2fs -f -m -q $d >said
mount -t f2fs $d /mnt/fs
fill 24
umount /mnt/fs
ask kill
mount -t f2fs $d /mnt/fs
unchanged
umount /mnt/fs
# f2fs-tools 1.15 counts free segments otherwise than the kernel where zones have gaps, on null_blk as well.
fsck.f2fs --dry-run $d >said || true
grep -q 'Write pointers consistency .*\[Ok' said
same "$(grep '\[Fail\]' said | grep -cv 'free segment_count')" 0

step btrfs
load btrfs
blkzone reset $d
mkfs.btrfs -q -f -O zoned -d single -m single $d
mount $d /mnt/fs
fill 24
umount /mnt/fs
ask kill
mount $d /mnt/fs
unchanged
btrfs scrub start -B /mnt/fs >said
grep -q 'no errors found' said
umount /mnt/fs
