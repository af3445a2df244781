# What every script of a guest begins with.
set -euo pipefail
cd /mnt/tmp

# Loads modules of the guest's kernel.
load() { modprobe -a -d /mnt/kernel "$@"; }

# Has the test do something, and waits until it is done.
ask() {
    echo "guest: ask $*"
    until [ -e /mnt/shared/answer ]; do sleep 0.1; done
    rm /mnt/shared/answer
}

# Waits for a file.
wait_for() {
    for _ in $(seq 300); do [ -e "$1" ] && return; sleep 0.1; done
    echo "there is no $1"
    return 1
}

# Says what follows, and when.
step() { echo "guest: $(cut -d' ' -f1 /proc/uptime) s: $*"; }

same() { [ "$1" = "$2" ] || { echo "it is '$1' and should be '$2'"; return 1; }; }

# Fails where the command succeeds.
refused() { if "$@"; then echo "not refused: $*"; return 1; fi; }

# Fills /mnt/fs with files, one of so many MiB, takes a part away again, and notes the sums of the rest.
fill() {
    cp -r /etc/[b-l]* /mnt/fs/
    dd if=/dev/urandom of=/mnt/fs/large bs=1M count=$1 status=none
    sync
    rm -r /mnt/fs/[b-c]*
    (cd /mnt/fs && find . -type f -print0 | sort -z | xargs -0 sha256sum) >sums
    same "$(($(wc -l <sums) > 20))" 1
}
unchanged() { (cd /mnt/fs && sha256sum --quiet -c /mnt/tmp/sums); }

load virtio_scsi sd_mod
