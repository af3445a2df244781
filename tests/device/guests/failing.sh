# Zones that fail below zonefs: what the kernel makes of them, with each way to go on after an error. RANDOM_ZONES are
# conventional; each case has a zone of its own, as a zone that failed stays so. /mnt/shared/zonefs is an empty file system.
d=/dev/sda
wait_for /sys/block/sda
load zonefs
dd if=/mnt/shared/zonefs of=$d bs=4k oflag=direct status=none

append() { dd if=/dev/zero of=$1 bs=4k count=1 oflag=direct,append conv=notrunc,nocreat status=none 2>>said; }
file_system() { grep -q ' /mnt/fs zonefs rw' /proc/mounts && echo rw || echo ro; }
# Size, permissions and file system of a file, now and when its inode was read anew.
is() {
    for _ in now again; do
        same "$(stat -c '%s %a' $1) $(file_system)" "$2"
        echo 2 >/proc/sys/vm/drop_caches
    done
}

n=0
# How the file system goes on, what becomes of the zone, what the file is then; a word after that: the zone fails before
# the file system is mounted.
fails() {
    file=/mnt/fs/seq/$n
    step "errors=$1, $2${4:+, mounted after that}"
    mount -t zonefs -o errors=$1 $d /mnt/fs
    append $file
    if [ -n "${4-}" ]; then
        umount /mnt/fs
        ask $2 $((RANDOM_ZONES + n))
        mount -t zonefs -o errors=$1 $d /mnt/fs
    else
        ask $2 $((RANDOM_ZONES + n))
    fi
    refused append $file
    is $file "$3"
    refused truncate -s 0 $file 2>>said
    is $file "$3"
    # What was written can be read where the file has a size.
    [ "${3%% *}" = 0 ] || cmp -n 4096 $file /dev/zero
    # Other zones go on, unless the file system does not.
    if [ "$(file_system)" = rw ]; then append /mnt/fs/seq/$((n + 1)); else refused append /mnt/fs/seq/$((n + 1)); fi
    umount /mnt/fs
    blkzone report -o $(((RANDOM_ZONES + n) * SECTORS)) -c 1 $d | grep -q "$([ $2 = offline ] && echo '(of)' || echo '(ro)')"
    blkzone reset -o $(((RANDOM_ZONES + n + 1) * SECTORS)) -c 1 $d
    n=$((n + 2))
}

fails remount-ro read-only "4096 440 ro"
fails zone-ro read-only "4096 440 rw"
fails repair read-only "4096 440 rw"
fails remount-ro offline "0 0 ro"
fails zone-ro offline "0 0 rw"
fails zone-offline offline "0 0 rw"
fails repair offline "0 0 rw"
fails zone-ro read-only "0 0 rw" before
fails repair offline "0 0 rw" before
step a reset of all zones leaves those that failed
blkzone reset $d
same "$(blkzone report $d | grep -c '(ro)')" 4
same "$(blkzone report $d | grep -c '(of)')" 5
same "$(blkzone report $d | grep -c '(em)')" $((ZONES - RANDOM_ZONES - 9))
