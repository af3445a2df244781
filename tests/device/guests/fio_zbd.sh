# fio's own tests of zoned block devices (t/zbd of its source). SOURCE is fio's source, with a built fio or without;
# it is read before /tmp is hidden. The disk is what the kernel attached; with LAYER a device that is served here, attached by ublk.
# ROOT and PYTHON are the project's.
mkdir -p fio/t
cp -r $SOURCE/t/zbd fio/t/zbd
# The script runs the fio two directories above.
if [ -x $SOURCE/fio ]; then cp $SOURCE/fio fio/fio; else ln -s "$(command -v fio)" fio/fio; fi
mount -t tmpfs tmp /tmp
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
fio/fio --version >/mnt/shared/version
bash fio/t/zbd/test-zbd-support $disk >/mnt/shared/shown 2>&1 || true
for log in fio/t/zbd/*.log.*; do
    [ "$(tail -1 $log)" != FAIL ] || { echo "== $log"; grep -i error $log || true; tail -40 $log; } >>/mnt/shared/failed
done
