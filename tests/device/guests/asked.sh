# What blktests (zbd/008, 011, 012 and 013) and zonefs-tools (0090, 0091, 0110, 0113 to 0115, 0210, 0223, 0306, 0320, 0324 and 0326) ask of disks of their own,
# asked of ours: one test after the other, in our own words. ZONES, FIRST (the first sequential zone), SECTORS (of a zone)
# and OPEN (how many can be open) are what the test knows; an empty zonefs is in /mnt/shared.
d=/dev/sda
wait_for /sys/block/sda
blkzone reset $d
zone=$((SECTORS * 512))
start=$((FIRST * zone))
# Runs the rest of the line over and over, meanwhile.
over_and_over() { while "$@"; do :; done >/dev/null 2>&1 & meanwhile=$!; }
ends() { kill $meanwhile; wait $meanwhile 2>/dev/null || true; }

step "no page that was read before a reset is seen after it (blktests, 008)"
head -c $zone /dev/zero | tr '\0' '\252' >pattern
over_and_over dd if=$d bs=64k skip=$start count=$((zone >> 16)) iflag=skip_bytes
for _ in $(seq 8); do
    dd if=pattern of=$d bs=1M seek=$start oflag=direct,seek_bytes status=none
    blkzone reset -o $((FIRST * SECTORS)) -c 1 $d
    cmp -n $zone -i $start:0 $d /dev/zero
done
ends

# A part of the disk: its first zone and how many; it is as is said, with so many zones and so many that may be open.
load dm_mod
part() {
    echo "0 $(($2 * SECTORS)) linear $d $(($1 * SECTORS))" | dmsetup create --noudevsync part
    queue=/sys/block/dm-0/queue
    wait_for $queue
    same "$(cat $queue/zoned) $(cat $queue/nr_zones) $(cat $queue/max_open_zones 2>/dev/null || echo -)" "$3"
}
gone() { dmsetup remove --noudevsync part; }
step "parts have the limit of open zones where they have more zones than that (blktests, 011)"
for each in "0 $ZONES host-managed $ZONES $OPEN" "0 $FIRST none 0 -" "$FIRST $((ZONES - FIRST)) host-managed $((ZONES - FIRST)) $OPEN" \
    "$FIRST $OPEN host-managed $OPEN 0" "$FIRST $((OPEN + 1)) host-managed $((OPEN + 1)) $OPEN" "0 $((FIRST + 2)) host-managed $((FIRST + 2)) 0"; do
    read -r from count said <<<"$each"
    part $from $count "$said"
    gone
done

fio="fio --name=j --direct=1 --zonemode=zbd --max_open_zones=8 --time_based --runtime=4 --output-format=terse"
step "writes go on while the scheduler changes (blktests, 012)"
changes() { for s in none mq-deadline; do echo $s >/sys/block/sda/queue/scheduler; sleep 0.1; done; }
over_and_over changes
$fio --filename=$d --ioengine=libaio --iodepth=1 --rw=randwrite --bs=4k --offset=$start --size=$((16 * zone)) >said
ends
step "writes to a part go on while its queue is frozen (blktests, 013)"
part $FIRST 16 "host-managed 16 0"
freezes() { for k in 4 8; do echo $k >/sys/block/dm-0/queue/read_ahead_kb; sleep 0.1; done; }
over_and_over freezes
$fio --filename=/dev/dm-0 --ioengine=libaio --iodepth=4 --rw=write --bs=4m --size=$((16 * zone)) --verify=crc32c --do_verify=1 >said
ends
gone
blkzone reset $d

load zonefs
dd if=/mnt/shared/zonefs of=$d bs=4k oflag=direct status=none
mount -t zonefs $d /mnt/fs
counts() { echo $(cat /sys/fs/zonefs/sda/nr_{wro,active}_seq_files); }
append() { dd if=/dev/zero of=/mnt/fs/seq/$1 bs=$2 count=${3-1} oflag=direct,append,dsync conv=notrunc,nocreat status=none; }
# The open files of a shell of its own, which tells how many, and ends with it.
opened() { (for n in $(seq 0 $(($1 - 1))); do eval "exec {fd}$2/mnt/fs/seq/$n" || exit 1; done 2>>said; counts); }
step "numbers of files are those of zones (zonefs-tools, 0110)"
same "$(stat -c %i /mnt/fs /mnt/fs/cnv /mnt/fs/seq | tr '\n' ' ')" "$ZONES $((ZONES + 1)) $((ZONES + 2)) "
for n in $(seq 0 $((FIRST - 2))); do same "$(stat -c %i /mnt/fs/cnv/$n)" $((n + 1)); done
for n in $(seq 0 $((ZONES - FIRST - 1))); do same "$(stat -c %i /mnt/fs/seq/$n)" $((n + FIRST)); done
step "a file is filled by writes of any length, each of them durable (zonefs-tools, 0090, 0091, 0306 and 0326)"
append 0 4k $((zone >> 12))
append 1 $zone
refused append 1 4k 2>said
append 5 132k $((zone / 135168))
append 5 $((zone % 135168))
same "$(stat -c %s /mnt/fs/seq/5)" $zone
fio="fio --name=j --create_on_open=0 --allow_file_create=0 --unlink=0 --bs=128k --size=$zone --verify=md5 --do_verify=1 --output-format=terse"
step "fio writes and reads files, and nothing is behind their ends (zonefs-tools, 0210, 0223, 0320 and 0324)"
for engine in psync "libaio --iodepth=64"; do $fio --filename=/mnt/fs/cnv/0 --rw=write --overwrite=1 --ioengine=$engine >said; done
same "$(dd if=/mnt/fs/cnv/0 bs=8k skip=$((zone - 512)) count=1 iflag=skip_bytes status=none | wc -c)" 512
$fio --filename=/mnt/fs/seq/6 --file_append=1 --rw=write --direct=1 --ioengine=libaio --iodepth=8 >said
umount /mnt/fs
mount -t zonefs $d /mnt/fs
for engine in psync "libaio --iodepth=8"; do $fio --filename=/mnt/fs/seq/6 --rw=randread --ioengine=$engine >said; done
append 7 4k
same "$(wc -c </mnt/fs/seq/7)" 4096
truncate -s 0 /mnt/fs/seq/7
step "which files are open for writes, and active (zonefs-tools, 0113 and 0115)"
same "$(opened $((OPEN + 1)) '<')" "0 0"
same "$(opened $((OPEN + 1)) '>>')" "$((OPEN + 1)) 0"
for n in 1 2 3; do
    append $((n + 1)) 4k
    same "$(counts)" "0 $n"
done
umount /mnt/fs
mount -t zonefs $d /mnt/fs
same "$(counts)" "0 3"
for n in 2 1 0; do
    append $((n + 2)) 4k $(((zone >> 12) - 1))
    same "$(counts)" "0 $n"
done
umount /mnt/fs
step "a zone is open while its file is (zonefs-tools, 0114)"
blkzone reset $d
mount -t zonefs -o explicit-open $d /mnt/fs
same "$(opened $((OPEN + 1)) '<')" "0 0"
for n in 1 $OPEN; do same "$(opened $n '>>')" "$n $n"; done
same "$(counts)" "0 0"
refused opened $((OPEN + 1)) '>>'
same "$(counts)" "0 0"
umount /mnt/fs
