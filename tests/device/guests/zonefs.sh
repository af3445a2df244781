# The tests of zonefs-tools. SOURCE is its directory of tests, with tools/zio built; mkzonefs is in its bin/ or installed.
# The disk is what the kernel attached.
cp -r $SOURCE suite
mount -t tmpfs tmp /tmp
# The suite looks for the kernel's modules and configuration where they would be if it was installed.
mkdir bin
printf '#!/bin/sh\nexec /sbin/modprobe -d /mnt/kernel "$@"\n' >bin/modprobe
printf '#!/bin/sh\nexec /sbin/modinfo -b /mnt/kernel "$@"\n' >bin/modinfo
chmod +x bin/*
PATH=/mnt/tmp/bin:/mnt/tmp/suite/bin:$PATH
export TERM=dumb
wait_for /dev/sda
cd suite
# The suite gives up where the first zone is conventional and alone.
bash zonefs-tests.sh /dev/sda >/mnt/shared/shown 2>&1 || true
cp ./*.log /mnt/shared/
