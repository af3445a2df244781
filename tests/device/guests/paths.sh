# Two sessions with one target, by open-iscsi: what two nexuses see of each other's reservations, and one disk of both by dm-multipath and
# multipathd, over which I/O goes on while a path is cut and comes back, while the server is killed and started again, and while it is stopped in good
# order. TARGET is its name, DIRECT and CUT are its portals as ports of the host: the second leads through the test, which cuts and mends it.
load crc32c_generic virtio_net iscsi_tcp dm_multipath dm_round_robin sg
for each in lo eth0; do busybox ip link set $each up; done
busybox ip addr add 10.0.2.15/24 dev eth0
# What the programs write down is forgotten with the guest.
cp -r /etc etc
mount --bind etc /etc
echo "InitiatorName=$(iscsi-iname)" >/etc/iscsi/initiatorname.iscsi
mkdir -p /etc/multipath
cat >/etc/multipath.conf <<END
defaults {
    find_multipaths no
    path_grouping_policy multibus
    path_selector "round-robin 0"
    polling_interval 1
    max_polling_interval 1
    fast_io_fail_tmo 1
    no_path_retry 60
    reservation_key file
}
blacklist {
    devnode "^(vd|sr|loop)"
}
END
mkdir -p /run/lock
# The guest's root is a chroot, where udevadm would do nothing.
export SYSTEMD_IGNORE_CHROOT=1
/lib/systemd/systemd-udevd --daemon
iscsid
for port in $DIRECT $CUT; do
    iscsiadm -m node -o new -T $TARGET -p 10.0.2.2:$port
    iscsiadm -m node -T $TARGET -p 10.0.2.2:$port -o update -n node.conn[0].timeo.noop_out_interval -v 1
done
iscsiadm -m node --login
for each in sda sdb; do wait_for /dev/$each; done
# Whoever looks at a disk that was closed would take what only we are to be told.
udevadm settle
udevadm control --stop-exec-queue

step one disk by two sessions
same "$(iscsiadm -m session | wc -l)" 2
same "$(cat /sys/block/sda/device/wwid)" "$(cat /sys/block/sdb/device/wwid)"
same "$(sg_vpd -p di_lu -q /dev/sda)" "$(sg_vpd -p di_lu -q /dev/sdb)"

# PERSISTENT RESERVE OUT by one of the two: what it does, and its keys and type.
out() { sg_persist --out "${@:2}" /dev/$1 >said 2>&1; }
keys() { sg_persist -n -k /dev/$1 | grep -o '0x[0-9a-f]*$' | sort | tr '\n' ' '; }
writes() { dd if=/dev/urandom of=/dev/$1 bs=4k count=1 oflag=direct status=none 2>said; }
# What a disk tells of a unit attention, once.
told() { sg_requests -v /dev/$1 2>&1 | grep -io "$2" | head -1; }

step what one reserves is kept from the other
out sda --register --param-sark=a
out sdb --register --param-sark=b
same "$(keys sda)$(keys sdb)" "0xa 0xb 0xa 0xb "
sg_persist -n -s /dev/sda >status
same "$(grep -o ',i,0x[0-9a-f]*' status | sort -u | wc -l)" 2
out sda --reserve --param-rk=a --prout-type=1
sg_persist -n -r /dev/sdb | grep -q 'Key=0xa'
writes sda
refused writes sdb
refused out sdb --release --param-rk=a --prout-type=1
dd if=/dev/sdb of=read bs=4k count=1 iflag=direct status=none

step what one preempts the other hears
out sdb --preempt --param-rk=b --param-sark=a --prout-type=1
same "$(told sda 'registrations preempted')" 'Registrations preempted'
same "$(told sda 'registrations preempted')" ''
same "$(keys sda)" "0xb "
writes sdb
refused writes sda
refused out sda --release --param-rk=a --prout-type=1
out sda --register --param-sark=a
out sda --preempt-abort --param-rk=a --param-sark=b --prout-type=5
same "$(told sdb 'registrations preempted')" 'Registrations preempted'
out sda --clear --param-rk=a
same "$(keys sdb)" ""
writes sda
writes sdb

step one disk of both
udevadm control --start-exec-queue
udevadm settle
multipathd
# Waits until so many paths can be used; the daemon takes a moment to answer.
paths() {
    for _ in $(seq 300); do
        multipathd show paths format '%t %T' >state || true
        if [ "$(grep -c 'active *ready' state)" = $1 ]; then return; fi
        sleep 0.2
    done
    cat state
    return 1
}
paths 2
disk=/dev/mapper/$(multipathd show maps raw format '%n')
wait_for $disk
written() { awk '{ print $7 }' /sys/block/dm-0/stat; }
# Writes and reads what was written, over and over, and meanwhile runs the rest of the line.
writes_on() {
    until [ -e over ]; do
        fio --name=j --filename=$disk --direct=1 --ioengine=libaio --iodepth=8 --rw=randwrite --bs=16k --size=8m --rate=4m \
            --verify=crc32c --do_verify=1 --output-format=terse >said || return 1
    done
}
while_writing() {
    rm -f over
    writes_on &
    local writer=$! start=$(written)
    until [ "$(written)" -gt $((start + 4096)) ]; do sleep 0.1; done
    "$@"
    kill -0 $writer
    touch over
    wait $writer
}
goes_on() {
    local before=$(written)
    until [ "$(written)" -gt $((before + 4096)) ]; do sleep 0.1; done
}

step what is written while a path is cut is read by the other
loses_a_path() {
    ask cut
    paths 1
    goes_on
}
while_writing loses_a_path
dmsetup status | grep -q ' F '

# Blocks that were read and written by each path, and that both do some of what follows.
by() { awk '{ print $3 + $7 }' /sys/block/$1/stat; }
both_work() {
    local one=$(by sda) other=$(by sdb)
    goes_on
    until [ "$(by sda)" -gt "$one" ] && [ "$(by sdb)" -gt "$other" ]; do sleep 0.1; done
}

step the path comes back while something is written, and both are used
has_it_back() {
    ask mend
    paths 2
    both_work
}
while_writing has_it_back

step the server is killed while something is written, and started again
loses_the_server() {
    ask kill
    paths 2
    both_work
}
while_writing loses_the_server

step the server is stopped in good order while something is written, and started again
stops_the_server() {
    ask stop
    paths 2
    both_work
}
while_writing stops_the_server
dmesg | grep -i 'conn error' | tail -3 || true

# PERSISTENT RESERVE OUT and IN over all paths at once.
persist() { mpathpersist "$@" $disk >said 2>&1; }
mkeys() { mpathpersist --in -k $disk 2>read | grep -o '^ *0x[0-9a-f]*' | tr -d ' ' | tr '\n' ' '; }

step reservations of a multipath disk are those of all its paths
persist --out --register --param-sark=abc
same "$(mkeys)" "0xabc 0xabc "
same "$(keys sda)" "0xabc 0xabc "
persist --out --reserve --param-rk=abc --prout-type=5
sg_persist -n -r /dev/sda | grep -q 'Key=0xabc'
while_writing both_work
# A path that comes back is registered again by the daemon.
ask cut
paths 1
ask mend
paths 2
for _ in $(seq 100); do
    if [ "$(keys sda)" = "0xabc 0xabc " ]; then break; fi
    sleep 0.1
done
same "$(keys sda)" "0xabc 0xabc "
while_writing both_work
persist --out --release --param-rk=abc --prout-type=5
sg_persist -n -r /dev/sda >status
refused grep 'Key=' status
persist --out --clear --param-rk=abc
same "$(mkeys)$(keys sda)" ""
