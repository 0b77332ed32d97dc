"""The daemon as a process: how it starts, says no, dies and comes back."""

from tests.broker.daemon import Daemon


def test_it_says_where_it_listens_and_stops_cleanly(daemon: Daemon) -> None:
    assert daemon.port > 0
    assert daemon.stop() == 0
    assert (daemon.data_dir / ".kafka_cleanshutdown").exists()
    for words in ("Starting up.", "Startup complete.", "Shutting down.", "Shutdown complete."):
        assert words in daemon.log()


def test_it_comes_back_after_kill_9_on_the_same_port(daemon: Daemon) -> None:
    bootstrap = daemon.bootstrap
    daemon.kill()
    daemon.start()
    assert daemon.bootstrap == bootstrap
    assert daemon.stop() == 0
