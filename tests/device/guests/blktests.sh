# Tests of blktests that take a disk. SOURCE is the suite, with src/zbdioctl built; it is read before /tmp is hidden. The
# disk is what the kernel attached; with LAYER a device that is served here, attached by ublk. ROOT and PYTHON are the
# project's.
cp -r $SOURCE suite
mount -t tmpfs tmp /tmp
# The suite looks for the kernel's modules and configuration where they would be if it was installed.
mkdir bin
printf '#!/bin/sh\nexec /sbin/modprobe -d /mnt/kernel "$@"\n' >bin/modprobe
printf '#!/bin/sh\nexec /sbin/modinfo -b /mnt/kernel "$@"\n' >bin/modinfo
# There are no rules that it could wait for.
printf '#!/bin/sh\n' >bin/udevadm
chmod +x bin/*
PATH=/mnt/tmp/bin:$PATH
mount -t tmpfs boot /boot
cp /mnt/kernel/boot/config-* /boot/
mount -t configfs none /sys/kernel/config || true
export TERM=dumb
disk=/dev/sda
if [ -n "$LAYER" ]; then
    load ublk_drv
    export SMRLAB_STATE=/mnt/tmp/state PYTHONPATH=$ROOT/python PYTHONDONTWRITEBYTECODE=1
    disk=$($PYTHON -c "
from smrlab import attached
from smrlab.devices import Device
config = {'name': 'z', 'drive': 'modern-7200', 'layer': '$LAYER', 'size': 1100 << 20}
print(attached.attach(Device.create('z', config, 'memory', None, {})))")
fi
wait_for $disk
cd suite
check() {
    echo "TEST_DEVS=($1) TIMEOUT=10" >config
    shift
    ./check "$@" >>/mnt/shared/shown 2>&1 || true
}
check $disk zbd/00{1,2,3,4,5,6} block/00{3,4,5,8} block/012 scsi/003 scsi/006
# zbd/007 wants a disk that is part of another one: all zones but the first, which is where it finds its sectors out.
zone=$(cat /sys/block/$(basename $disk)/queue/chunk_sectors)
if [ "$(cat /sys/block/$(basename $disk)/queue/zoned)" = host-managed ]; then
    load dm_mod
    sectors=$(($(blockdev --getsz $disk) / zone * zone - zone))
    echo "0 $sectors linear $disk $zone" | dmsetup create --noudevsync part
    dmsetup mknodes part
    wait_for /dev/dm-0
    check /dev/dm-0 zbd/007
fi
