"""Ctrl-C is answered between steps, never within one."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest

from firth.core.checkpoint import Checkpoints, interrupts_held


@pytest.fixture
def interruptible():
    """Ctrl-C interrupts: where tests are started in the background it may not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_waits_for_the_end_of_the_block():
    done = []
    with pytest.raises(KeyboardInterrupt), interrupts_held():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        done.append("step")
    assert done == ["step"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interruptible")
def test_an_error_in_the_block_goes_first():
    with pytest.raises(ZeroDivisionError), interrupts_held():
        signal.raise_signal(signal.SIGINT)
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_that_is_ignored_or_deadly_stays_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    before_term = signal.signal(signal.SIGTERM, signal.SIG_DFL)  # Ray sets a handler of its own
    try:
        with interrupts_held():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, before_term)


def test_other_threads_are_let_alone():
    failed = []

    def work() -> None:
        try:
            with interrupts_held():
                pass
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert failed == []


def test_the_folder_may_be_a_string(tmp_path):
    checkpoints = Checkpoints(str(tmp_path / "run"), 60, {"seed": 1})
    checkpoints.save({"table": np.ones((2, 3), np.float32)}, {"epoch": 4})
    loaded = Checkpoints(tmp_path / "run", 60, {"seed": 1}).load()
    assert loaded is not None
    arrays, state = loaded
    assert arrays["table"].sum() == 6 and state == {"epoch": 4}
