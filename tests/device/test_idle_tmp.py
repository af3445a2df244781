import sys
sys.path.insert(0,'/work/main/tests/device')
from test_dm_zoned import *
import test_dm_zoned as T
@pytest.mark.parametrize("name", ["postgres"])
def test_idle(make: Make, fast: Path, tmp_path: Path, name: str) -> None:
    w=Workload(name, 900, 12)
    shared=tmp_path/'shared'; shared.mkdir()
    machine=Guest(shared)
    record=Path('/tmp/t/idle/record.parquet')
    record.unlink(missing_ok=True)
    device, port = serve(make, store=str(fast/'s'), drive=DRIVE, layer=LAYER, size=SIZE, timing="model", speed=20, record=str(record))
    zones=device.ask("zones")["zones"]
    conventional=sum(z["conventional"] for z in zones)
    target=DmZoned(len(zones), conventional, ZONE*512)
    (shared/"dm-zoned").write_bytes(target.image())
    all_=list(requests(w))
    n=100
    for i in range(0,len(all_),n):
        (shared/f"iolog{i//n}").write_text(iolog(all_[i:i+n]))
    machine.scsi(url(device, port))
    machine.run("/tmp/t/idle/idle.sh", 900, SECTORS=target.sectors)
    device.stop()
    print(conventional, 2*target.sized(target.maps)[1], len(zones))
