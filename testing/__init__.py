"""Testing: the daemon's side of the pytest plugin; rollcall/testing/ is the side of the tests."""
