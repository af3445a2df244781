# The kernel's view of a host-managed disk, and fio on it. ZONES, FIRST (the first sequential zone), SECTORS (of a zone)
# and OPEN (how many can be open) are what the test knows of it.
d=/dev/sda
wait_for /sys/block/sda
queue=/sys/block/sda/queue

step what the kernel sees
same "$(cat $queue/zoned)" host-managed
same "$(cat $queue/nr_zones)" $ZONES
same "$(cat $queue/chunk_sectors)" $SECTORS
same "$(cat $queue/max_open_zones)" $OPEN
same "$(cat $queue/physical_block_size)" 4096
same "$(blkzone report $d | grep -c CONVENTIONAL)" $FIRST
same "$(blkzone report $d | grep -c SEQ_WRITE_REQUIRED)" $((ZONES - FIRST))

start=$((FIRST * SECTORS))
conditions() { blkzone report -o $start -c 3 $d | sed 's/.*zcond:[ 0-9]*(\(..\)).*/\1/' | tr '\n' ' '; }

step zone commands
same "$(conditions)" "em em em "
blkzone open -o $start -c 2 $d
same "$(conditions)" "oe oe em "
blkzone close -o $start -c 1 $d
blkzone finish -o $((start + SECTORS)) -c 1 $d
same "$(conditions)" "em fu em "
dd if=/dev/zero of=$d bs=64k count=1 seek=$((start * 512)) oflag=direct,seek_bytes status=none
same "$(conditions)" "oi fu em "
refused dd if=/dev/zero of=$d bs=64k count=1 seek=$((start * 512)) oflag=direct,seek_bytes status=none 2>said
refused dd if=/dev/zero of=$d bs=64k count=1 seek=$(((start + SECTORS) * 512)) oflag=direct,seek_bytes status=none 2>said
blkzone reset -o $start -c 2 $d
same "$(conditions)" "em em em "

# 12 MiB in order and 12 MiB out of order, each read back; zones are written from up to eight places at once.
fio="fio --filename=$d --direct=1 --ioengine=libaio --iodepth=32 --zonemode=zbd --max_open_zones=8 --verify=crc32c --thread
    --output-format=terse --size=64m --io_size=12m"
places() {
    $fio --name=ordered --bs=128k --offset=$((start * 512)) --rw=$1 \
        --name=random --bs=16k --offset=$((start * 512 + (64 << 20))) --rw=$2 >said
}
step fio in order and at random
places write randwrite
blkzone report $d >before
sync $d
ask kill
step what was written is there after a kill
# What was open is closed.
blkzone report $d | sed 's/2(oi)/4(cl)/' | diff - <(sed 's/2(oi)/4(cl)/' before)
places read read
blkzone reset $d
same "$(blkzone report $d | grep -c '(em)')" $((ZONES - FIRST))
