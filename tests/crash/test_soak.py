"""A provider that fails in every way, and a command that is killed in the midst of it: the short
form of `bench/soak.py`."""

from bench.soak import FAULTS, fault_of, soaked


def test_all_is_settled_and_adds_up(tmp_path, long):
    units = 5000 if long else 300
    figures = soaked(tmp_path, units, answers=units // 4)
    assert figures["broken"] == []
    assert figures["verdicts"] + sum(figures["failures"].values()) == units
    assert figures["kills"] > 0
    assert figures["faults"]


def test_every_fault_comes_up():
    faults = {fault_of(number.to_bytes(6, "big")) for number in range(0, 2**48, 2**48 // 1000)}
    assert faults == {"", *FAULTS}
