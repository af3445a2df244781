# Served devices as block devices of the kernel. PYTHON and ROOT are the project's.
load ublk_drv ext4 btrfs
SMRLAB_STATE=/mnt/tmp/state PYTHONPATH=$ROOT/python PYTHONDONTWRITEBYTECODE=1 $PYTHON -u $ROOT/tests/device/guests/ublk.py
