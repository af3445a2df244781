# libzbc's tests against the disk that the kernel attached. SUITE has them.
load sg
cp -r $SUITE test
cd test
# It writes there what it found out. The checkout that the suite is in may be below, too.
mount -t tmpfs tmp /tmp
export TERM=dumb
wait_for /dev/sg0
bash ./zbc_test.sh /dev/sg0 >/mnt/shared/shown 2>&1 || true
