# zonefs, f2fs, and dm-zoned with ext4, one after the other on a host-managed disk; the server is killed after each step.
# SECTORS are those of the dm-zoned target; its empty metadata and those of zonefs are in /mnt/shared.
d=/dev/sda
wait_for /sys/block/sda
random=$(blkzone report $d | grep -c CONVENTIONAL)

step zonefs
load zonefs
dd if=/mnt/shared/zonefs of=$d bs=4k oflag=direct status=none
mount -t zonefs $d /mnt/fs
# One conventional zone holds the superblock.
same "$(ls /mnt/fs/cnv | wc -l)" $((random - 1))
dd if=/dev/urandom of=data bs=64k count=3 status=none
dd if=data of=/mnt/fs/seq/2 bs=64k oflag=direct,append conv=notrunc status=none
refused dd if=data of=/mnt/fs/seq/2 bs=4k count=1 oflag=direct conv=notrunc status=none 2>said
ask kill
umount /mnt/fs
mount -t zonefs $d /mnt/fs
same "$(stat -c %s /mnt/fs/seq/2)" 196608
cmp data /mnt/fs/seq/2
truncate -s 0 /mnt/fs/seq/2
same "$(stat -c %s /mnt/fs/seq/2)" 0
umount /mnt/fs

step f2fs
load f2fs
blkzone reset $d
mkfs.f2fs -f -m -q $d >said
mount -t f2fs $d /mnt/fs
fill 6
sync
umount /mnt/fs
ask kill
mount -t f2fs $d /mnt/fs
unchanged
umount /mnt/fs
fsck.f2fs $d >said
grep -q 'Done' said

step dm-zoned with ext4
load dm-zoned ext4
blkzone reset $d
dd if=/mnt/shared/dm-zoned of=$d bs=1M oflag=direct status=none
up() { dmsetup create --noudevsync z --table "0 $SECTORS zoned $d" && wait_for /dev/dm-0; }
up
mkfs.ext4 -q /dev/dm-0
mount /dev/dm-0 /mnt/fs
fill 6
sync
umount /mnt/fs
dmsetup remove --noudevsync z
ask kill
up
e2fsck -f -n /dev/dm-0 >said 2>&1
mount /dev/dm-0 /mnt/fs
unchanged
umount /mnt/fs
dmsetup remove --noudevsync z
