# dm-zoned under a recorded workload, one request at a time. SECTORS are those of the target, whose empty
# metadata are in /mnt/shared, as are the requests (fio's format).
d=/dev/sda
wait_for /sys/block/sda
load dm-zoned
dd if=/mnt/shared/dm-zoned of=$d bs=1M oflag=direct status=none
dmsetup create --noudevsync z --table "0 $SECTORS zoned $d"
wait_for /dev/dm-0
step replay
fio --name=replay --read_iolog=/mnt/shared/iolog --replay_no_stall=1 --ioengine=psync --direct=1 --thread --output-format=terse >said
dmsetup remove --noudevsync z
