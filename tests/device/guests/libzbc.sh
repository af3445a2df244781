# libzbc's tests against the disk that the kernel attached. SUITE has them.
load sg
# It writes there what it found out.
mount -t tmpfs tmp /tmp
export TERM=dumb
wait_for /dev/sg0
cp -r $SUITE test
cd test
bash ./zbc_test.sh /dev/sg0 >/mnt/shared/shown 2>&1 || true
