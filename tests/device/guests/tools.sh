# libzbd's program, and device mapper's target linear over a part of the zones. ZONES, FIRST (the first sequential zone)
# and SECTORS (of a zone) are what the test knows of the disk.
d=/dev/sda
wait_for /sys/block/sda
zone=$((SECTORS * 512))
start=$((FIRST * zone))
range="-ofst $start -len $((3 * zone))"
contents() { dd if=$d bs=64k count=3 skip=$((start + zone)) iflag=direct,skip_bytes status=none | sha1sum; }

step zbd
same "$(zbd report -n $d)" "$ZONES zones"
zbd open -ofst $start -len $zone $d
zbd report $range $d | head -1 | grep -q ' oe,'
zbd close -ofst $start -len $zone $d
zbd finish -ofst $start -len $zone $d
zbd report $range $d | head -1 | grep -q ' fu,'
dd if=/dev/urandom of=$d bs=64k count=3 seek=$((start + zone)) oflag=direct,seek_bytes status=none
zbd report $range $d >before
contents >data

step zones are dumped, reset and restored
zbd dump $range -d /mnt/tmp -f all $d
zbd reset $range $d
same "$(zbd report -n -ro em $range $d)" "3 zones"
zbd restore $range -d /mnt/tmp -f all $d
zbd report $range $d | diff before -
contents | diff data -

step linear
load dm_mod
echo "0 $((2 * SECTORS)) linear $d $(((FIRST + 4) * SECTORS))" | dmsetup create part
part=/dev/mapper/part
dmsetup mknodes
same "$(blkzone report $part | grep -c SEQ_WRITE_REQUIRED)" 2
dd if=/dev/urandom of=$part bs=64k count=2 oflag=direct status=none
refused dd if=/dev/zero of=$part bs=64k count=1 oflag=direct status=none 2>said
blkzone report -c 1 $part | grep -q 'wptr 0x000100'
blkzone reset -c 1 $part
blkzone report -c 1 $part | grep -q '1(em)'
dmsetup remove --noudevsync part
