# The lines of docs/zones.md, which are in /mnt/shared/lines: everything happens in the guest. PYTHON and ROOT are the project's.
load iscsi_tcp btrfs
export SMRLAB_STATE=/mnt/tmp/state PYTHONPATH=$ROOT/python PYTHONDONTWRITEBYTECODE=1
smrlab() { $PYTHON -m smrlab "$@"; }
busybox ip link set lo up
# What open-iscsi writes down is forgotten with the guest.
cp -r /etc/iscsi iscsi
mount --bind iscsi /etc/iscsi
[ -s /etc/iscsi/initiatorname.iscsi ] && grep -q '^InitiatorName=' /etc/iscsi/initiatorname.iscsi ||
    echo "InitiatorName=$(iscsi-iname)" >/etc/iscsi/initiatorname.iscsi
mkdir -p /run/lock
iscsid
while read -r line; do
    step "$line"
    eval "$line"
    case $line in *--login*) wait_for /sys/block/sda ;; esac
done </mnt/shared/lines
findmnt -n -o FSTYPE /mnt/fs
umount /mnt/fs
