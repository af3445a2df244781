# In a guest: hands over to ublk_guest.py. PYTHON, ROOT, PLUGINS, MEMORY, CORE, ROUNDS and SECONDS are the bench's.
load ublk_drv
export SMRLAB_STATE=/mnt/tmp/state PYTHONPATH=$ROOT/python PYTHONDONTWRITEBYTECODE=1
modprobe -d /mnt/kernel null_blk $MEMORY
taskset -c $CORE $PYTHON -u $ROOT/benches/device/ublk_guest.py $ROUNDS $SECONDS /mnt/shared/found.json $PLUGINS
